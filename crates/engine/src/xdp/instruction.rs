//! BPF instructions as types, and their encoding (Linux's Documentation/bpf/standardization/instruction-set.rst). Pure.
//! Whether a program is valid is checked by the kernel's verifier.

use std::collections::BTreeMap;

/// A register. `R0` is the return value, `R1` to `R5` are arguments and clobbered by calls, `R6` to `R9` preserved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Register {
    R0 = 0,
    R1 = 1,
    R2 = 2,
    R3 = 3,
    R4 = 4,
    R5 = 5,
    R6 = 6,
    R7 = 7,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Size {
    Byte,
    Half,
    Word,
    Double,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Operand {
    Of(Register),
    Number(i32),
}

/// A computation in 64 bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Operation {
    Set,
    Add,
    Subtract,
    And,
    Xor,
    ShiftLeft,
    ShiftRight,
    ShiftRightSigned,
}

/// Condition of a jump, for unsigned numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Condition {
    Equal,
    NotEqual,
    Greater,
}

/// A helper function of the kernel (include/uapi/linux/bpf.h).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Helper {
    ProcessorNumber = 8,
    Redirect = 23,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Label {
    NoError,
    NotZero,
    Pass,
    Drop,
    End,
}

/// One instruction, or a label between two.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum BpfStep {
    Compute(Operation, Register, Operand),
    /// Loads the address of the program's map, which has one value.
    PointToMap(Register),
    /// Loads into the first register from the address in the second plus the offset.
    Load(Size, Register, Register, i16),
    /// Stores at the address in the register plus the offset.
    Store(Size, Register, i16, Operand),
    /// Adds the second register atomically to the eight bytes at the address in the first plus the offset.
    AddAtomically(Register, i16, Register),
    /// Converts the register's lowest bytes to network byte order.
    BigEndian(Size, Register),
    Jump(Condition, Register, Operand, Label),
    DefineLabel(Label),
    Call(Helper),
    Exit,
}

pub(super) type Instruction = [u8; 8];

// Opcodes: class, mode and source.
const LOAD_WIDE: u8 = 0x18;
const LOAD: u8 = 0x61;
const STORE_NUMBER: u8 = 0x62;
const STORE: u8 = 0x63;
const STORE_ATOMIC: u8 = 0xc3;
const JUMP: u8 = 0x05;
const COMPUTE: u8 = 0x07;
const FROM_REGISTER: u8 = 0x08;
const TO_BIG_ENDIAN: u8 = 0xdc;
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;
/// Source of a wide load of the address of a map's value, by the map's descriptor (BPF_PSEUDO_MAP_VALUE).
const OF_MAP: u8 = 2;

/// Encodes the steps as a program, whose map has this descriptor.
pub(super) fn assemble(steps: &[BpfStep], map: i32) -> Vec<Instruction> {
    let mut places = BTreeMap::new();
    let mut at = 0;
    for step in steps {
        if let BpfStep::DefineLabel(label) = step {
            let before = places.insert(*label, at);
            debug_assert_eq!(before, None, "{label:?} is at two places");
        }
        at += step.length();
    }
    let mut program = Vec::with_capacity(at as usize);
    for step in steps {
        let next = program.len() as i16 + step.length();
        let distance = |label: &Label| places[label] - next;
        step.encode(map, distance, &mut program);
    }
    program
}

impl BpfStep {
    fn length(&self) -> i16 {
        match self {
            BpfStep::DefineLabel(_) => 0,
            BpfStep::PointToMap(_) => 2,
            BpfStep::Compute(..)
            | BpfStep::Load(..)
            | BpfStep::Store(..)
            | BpfStep::AddAtomically(..)
            | BpfStep::BigEndian(..)
            | BpfStep::Jump(..)
            | BpfStep::Call(_)
            | BpfStep::Exit => 1,
        }
    }

    fn encode(&self, map: i32, distance: impl Fn(&Label) -> i16, out: &mut Vec<Instruction>) {
        use Operand::{Number, Of};
        use Register::R0;
        let instruction = match *self {
            BpfStep::DefineLabel(_) => return,
            BpfStep::Compute(operation, to, Of(from)) => {
                let code = COMPUTE | operation.code() | FROM_REGISTER;
                one(code, to, from as u8, 0, 0)
            }
            BpfStep::Compute(operation, to, Number(number)) => {
                one(COMPUTE | operation.code(), to, 0, 0, number)
            }
            BpfStep::PointToMap(to) => {
                out.push(one(LOAD_WIDE, to, OF_MAP, 0, map));
                one(0, R0, 0, 0, 0)
            }
            BpfStep::Load(size, to, from, offset) => {
                one(LOAD | size.code(), to, from as u8, offset, 0)
            }
            BpfStep::Store(size, to, offset, Of(from)) => {
                one(STORE | size.code(), to, from as u8, offset, 0)
            }
            BpfStep::Store(size, to, offset, Number(number)) => {
                one(STORE_NUMBER | size.code(), to, 0, offset, number)
            }
            // The number selects the atomic operation; 0 is an addition.
            BpfStep::AddAtomically(to, offset, from) => one(
                STORE_ATOMIC | Size::Double.code(),
                to,
                from as u8,
                offset,
                0,
            ),
            BpfStep::BigEndian(size, register) => one(TO_BIG_ENDIAN, register, 0, 0, size.bits()),
            BpfStep::Jump(condition, left, Of(right), label) => {
                let code = JUMP | condition.code() | FROM_REGISTER;
                one(code, left, right as u8, distance(&label), 0)
            }
            BpfStep::Jump(condition, left, Number(right), label) => {
                one(JUMP | condition.code(), left, 0, distance(&label), right)
            }
            BpfStep::Call(helper) => one(CALL, R0, 0, 0, helper as i32),
            BpfStep::Exit => one(EXIT, R0, 0, 0, 0),
        };
        out.push(instruction);
    }
}

/// Encodes `code`, the two registers in one byte, the offset and the number.
fn one(code: u8, to: Register, from: u8, offset: i16, number: i32) -> Instruction {
    let registers = match cfg!(target_endian = "little") {
        true => to as u8 | from << 4,
        false => (to as u8) << 4 | from,
    };
    let [offset_0, offset_1] = offset.to_ne_bytes();
    let [number_0, number_1, number_2, number_3] = number.to_ne_bytes();
    [
        code, registers, offset_0, offset_1, number_0, number_1, number_2, number_3,
    ]
}

impl Size {
    fn code(self) -> u8 {
        match self {
            Size::Word => 0x00,
            Size::Half => 0x08,
            Size::Byte => 0x10,
            Size::Double => 0x18,
        }
    }

    fn bits(self) -> i32 {
        match self {
            Size::Byte => 8,
            Size::Half => 16,
            Size::Word => 32,
            Size::Double => 64,
        }
    }
}

impl Operation {
    fn code(self) -> u8 {
        match self {
            Operation::Add => 0x00,
            Operation::Subtract => 0x10,
            Operation::And => 0x50,
            Operation::ShiftLeft => 0x60,
            Operation::ShiftRight => 0x70,
            Operation::Xor => 0xa0,
            Operation::Set => 0xb0,
            Operation::ShiftRightSigned => 0xc0,
        }
    }
}

impl Condition {
    fn code(self) -> u8 {
        match self {
            Condition::Equal => 0x10,
            Condition::Greater => 0x20,
            Condition::NotEqual => 0x50,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Operand::{Number, Of};
    use Register::{R0, R1, R2, R6};

    #[test]
    #[cfg(target_endian = "little")]
    fn bpf_encoding_matches_standard() {
        let steps = [
            BpfStep::Compute(Operation::Set, R0, Number(2)),
            BpfStep::Compute(Operation::Add, R6, Of(R1)),
            BpfStep::Load(Size::Word, R2, R1, 4),
            BpfStep::Store(Size::Half, R2, -2, Of(R6)),
            BpfStep::Store(Size::Double, R2, 8, Number(-1)),
            BpfStep::BigEndian(Size::Half, R6),
            BpfStep::Call(Helper::Redirect),
            BpfStep::Exit,
        ];
        let expected: [Instruction; 8] = [
            [0xb7, 0x00, 0, 0, 2, 0, 0, 0],
            [0x0f, 0x16, 0, 0, 0, 0, 0, 0],
            [0x61, 0x12, 4, 0, 0, 0, 0, 0],
            [0x6b, 0x62, 0xfe, 0xff, 0, 0, 0, 0],
            [0x7a, 0x02, 8, 0, 0xff, 0xff, 0xff, 0xff],
            [0xdc, 0x06, 0, 0, 16, 0, 0, 0],
            [0x85, 0x00, 0, 0, 23, 0, 0, 0],
            [0x95, 0x00, 0, 0, 0, 0, 0, 0],
        ];
        assert_eq!(assemble(&steps, 0), expected);
    }

    #[test]
    fn bpf_jump_offsets_skip_instructions() {
        let steps = [
            BpfStep::Jump(Condition::Equal, R1, Number(0), Label::End),
            BpfStep::PointToMap(R2),
            BpfStep::Jump(Condition::Greater, R1, Of(R2), Label::End),
            BpfStep::DefineLabel(Label::End),
            BpfStep::Exit,
        ];
        let program = assemble(&steps, 0);
        let offset = |at: usize| i16::from_ne_bytes([program[at][2], program[at][3]]);
        assert_eq!((program.len(), offset(0), offset(3)), (5, 3, 0));
    }

    #[test]
    fn bpf_map_load_uses_descriptor() {
        let program = assemble(&[BpfStep::PointToMap(R6)], 9);
        assert_eq!((program.len(), program[0][4]), (2, 9));
        assert!(program[0][1] == 0x26 || program[0][1] == 0x62);
    }
}
