//! Descriptor sets: the methods of services and the types of their messages. Encodes JSON messages, once, before the
//! run.

use std::fmt;

use prost_reflect::prost::Message;
use prost_reflect::prost_types::FileDescriptorSet;
use prost_reflect::{DescriptorPool, DynamicMessage, MethodDescriptor};

/// Command that creates a set, for messages.
const PROTOC_COMMAND: &str = "protoc --include_imports --descriptor_set_out=FILE api.proto";

/// Names listed in the message about an unknown one.
const NAMES_LISTED_MAX: usize = 10;

/// Decoded descriptor set.
#[derive(Clone)]
pub struct Descriptors(DescriptorPool);

/// Lists the services only.
impl fmt::Debug for Descriptors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let services = self
            .0
            .services()
            .map(|service| service.full_name().to_owned());
        f.debug_list().entries(services).finish()
    }
}

impl Descriptors {
    /// Decodes a `google.protobuf.FileDescriptorSet`, as written by protoc and buf.
    ///
    /// # Errors
    /// A sentence with the mistake and the command that creates a set.
    pub fn parse(bytes: &[u8]) -> Result<Descriptors, String> {
        let is_source = ["syntax", "edition", "package", "import", "//"];
        let text = std::str::from_utf8(bytes).unwrap_or_default().trim_start();
        if is_source.iter().any(|word| text.starts_with(word)) {
            return Err(format!(
                "this is a .proto source file: expected a descriptor set, which is made from it by {PROTOC_COMMAND}"
            ));
        }
        let no_set = |error: &dyn fmt::Display| {
            format!(
                "not a descriptor set, or truncated: {error}; expected one made by {PROTOC_COMMAND}"
            )
        };
        let set = FileDescriptorSet::decode(bytes).map_err(|error| no_set(&error))?;
        check_syntax(&set)?;
        let pool = DescriptorPool::decode(bytes).map_err(|error| no_set(&error))?;
        if pool.services().len() == 0 {
            return Err(format!(
                "this descriptor set has no services: expected one made by {PROTOC_COMMAND} from a file with a service"
            ));
        }
        Ok(Descriptors(pool))
    }

    /// Checks that `path` is that of a unary method.
    ///
    /// # Errors
    /// A sentence with the reason, or with the names that exist.
    pub(crate) fn check(&self, path: &str) -> Result<(), String> {
        self.method(path).map(|_| ())
    }

    /// Encodes the JSON message for the method at `path`.
    ///
    /// # Errors
    /// A sentence with the position in the text and the mistake.
    pub(crate) fn encode(&self, path: &str, json: &str) -> Result<Vec<u8>, String> {
        let of = self.method(path)?.input();
        let name = of.full_name().to_owned();
        let mut text = serde_json::Deserializer::from_str(json);
        let message = DynamicMessage::deserialize(of, &mut text);
        let message = message.and_then(|message| text.end().map(|()| message));
        let message = message.map_err(|error| {
            format!(
                "the message is not a {name} in JSON: {error}; for the format see \
                 https://protobuf.dev/programming-guides/json/"
            )
        })?;
        Ok(message.encode_to_vec())
    }

    /// Encodes the JSON message for each method, for tests and the fuzzer: an encoded message must decode as its type,
    /// and every error has a message.
    pub(crate) fn encode_all(&self, json: &str) {
        for service in self.0.services() {
            for method in service.methods() {
                let path = format!("/{}/{}", service.full_name(), method.name());
                let is_unary = !method.is_client_streaming() && !method.is_server_streaming();
                // Names that are not identifiers may contain slashes.
                if path.matches('/').count() == 2 {
                    assert_eq!(self.check(&path).is_ok(), is_unary, "{path}");
                }
                match self.encode(&path, json) {
                    Ok(bytes) => {
                        let read = DynamicMessage::decode(method.input(), &bytes[..]);
                        assert!(read.is_ok(), "{path}: {read:?}");
                    }
                    Err(sentence) => assert!(!sentence.is_empty()),
                }
            }
        }
    }

    /// Returns the unary method at `path`, `/package.Service/Method`.
    fn method(&self, path: &str) -> Result<MethodDescriptor, String> {
        let names = path.trim_start_matches('/').split_once('/');
        let (of, name) = names.unwrap_or_default();
        let Some(service) = self.0.get_service_by_name(of) else {
            let names = self.0.services();
            let names = names.map(|service| service.full_name().to_owned());
            return Err(format!(
                "the descriptors have no service {of:?}: expected {}",
                one_of(names)
            ));
        };
        let mut methods = service.methods();
        let Some(method) = methods.find(|method| method.name() == name) else {
            let names = service.methods().map(|method| method.name().to_owned());
            return Err(format!(
                "{of} has no method {name:?}: expected {}",
                one_of(names)
            ));
        };
        let streams = match (method.is_client_streaming(), method.is_server_streaming()) {
            (false, false) => return Ok(method),
            (true, false) => "a client-streaming method",
            (false, true) => "a server-streaming method",
            (true, true) => "a bidirectional streaming method",
        };
        Err(format!(
            "{of}/{name} is {streams}, but only unary methods are supported: choose a unary method"
        ))
    }
}

/// Refuses files with another syntax than proto2 and proto3, on which prost-reflect 0.16 panics.
fn check_syntax(set: &FileDescriptorSet) -> Result<(), String> {
    let is_unknown = |syntax: &str| !matches!(syntax, "proto2" | "proto3");
    let mut files = set.file.iter();
    let Some(file) = files.find(|file| file.syntax.as_deref().is_some_and(is_unknown)) else {
        return Ok(());
    };
    Err(format!(
        "the file {:?} of this descriptor set has the syntax {:?}: expected proto2 or proto3, since editions are not \
         supported",
        file.name(),
        file.syntax()
    ))
}

/// Lists as many names as fit in a message.
fn one_of(names: impl Iterator<Item = String>) -> String {
    let mut names: Vec<String> = names.collect();
    let more = names.len().saturating_sub(NAMES_LISTED_MAX);
    names.truncate(NAMES_LISTED_MAX);
    match (names.len(), more) {
        (0, _) => "another service, since this one has none".to_owned(),
        (_, 0) => names.join(", "),
        (_, more) => format!("{} or one of {more} more", names.join(", ")),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use prost_reflect::prost_types::{
        DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet,
        MethodDescriptorProto, ServiceDescriptorProto, field_descriptor_proto,
    };

    fn field(name: &str, number: i32, of: field_descriptor_proto::Type) -> FieldDescriptorProto {
        FieldDescriptorProto {
            name: Some(name.to_owned()),
            number: Some(number),
            r#type: Some(of.into()),
            label: Some(field_descriptor_proto::Label::Optional.into()),
            ..FieldDescriptorProto::default()
        }
    }

    fn method(name: &str, from_client: bool, from_server: bool) -> MethodDescriptorProto {
        MethodDescriptorProto {
            name: Some(name.to_owned()),
            input_type: Some(".shop.Order".to_owned()),
            output_type: Some(".shop.Order".to_owned()),
            client_streaming: Some(from_client),
            server_streaming: Some(from_server),
            ..MethodDescriptorProto::default()
        }
    }

    pub(crate) fn shop() -> Vec<u8> {
        in_syntax("proto3")
    }

    fn in_syntax(syntax: &str) -> Vec<u8> {
        use field_descriptor_proto::Type;
        let order = DescriptorProto {
            name: Some("Order".to_owned()),
            field: vec![
                field("name", 1, Type::String),
                field("item_count", 2, Type::Uint32),
            ],
            ..DescriptorProto::default()
        };
        let shop = ServiceDescriptorProto {
            name: Some("Shop".to_owned()),
            method: vec![
                method("Buy", false, false),
                method("Watch", false, true),
                method("Fill", true, false),
                method("Talk", true, true),
            ],
            ..ServiceDescriptorProto::default()
        };
        let file = FileDescriptorProto {
            name: Some("shop.proto".to_owned()),
            package: Some("shop".to_owned()),
            message_type: vec![order],
            service: vec![shop],
            syntax: Some(syntax.to_owned()),
            ..FileDescriptorProto::default()
        };
        FileDescriptorSet { file: vec![file] }.encode_to_vec()
    }

    #[test]
    fn json_is_encoded_as_protobuf() {
        let descriptors = Descriptors::parse(&shop()).unwrap();
        for (json, expected) in [
            ("{}", &b""[..]),
            (r#"{"name": "x"}"#, b"\x0a\x01x"),
            (r#"{"itemCount": 3, "name": null}"#, b"\x10\x03"),
            (r#" {"item_count": "3"} "#, b"\x10\x03"),
        ] {
            let bytes = descriptors.encode("/shop.Shop/Buy", json);
            assert_eq!(bytes.as_deref(), Ok(expected), "{json}");
        }
    }

    #[test]
    fn invalid_grpc_calls_are_refused() {
        let descriptors = Descriptors::parse(&shop()).unwrap();
        for (path, json, part) in [
            ("/shop.Shop/Buy", "{", "shop.Order in JSON: EOF"),
            ("/shop.Shop/Buy", "{} {}", "trailing characters"),
            ("/shop.Shop/Buy", "[]", "shop.Order"),
            ("/shop.Shop/Buy", r#"{"nmae": "x"}"#, "nmae"),
            ("/shop.Shop/Buy", r#"{"itemCount": -1}"#, "line 1"),
            ("/shop.Shop/Sell", "{}", "expected Buy, Watch, Fill, Talk"),
            ("/shop.Store/Buy", "{}", "expected shop.Shop"),
            ("/", "{}", "expected shop.Shop"),
            ("/shop.Shop/Watch", "{}", "a server-streaming"),
            ("/shop.Shop/Fill", "{}", "a client-streaming"),
            ("/shop.Shop/Talk", "{}", "a bidirectional streaming"),
        ] {
            let sentence = descriptors.encode(path, json).unwrap_err();
            assert!(sentence.contains(part), "{path} {json}: {sentence}");
        }
    }

    #[test]
    fn invalid_descriptor_sets_are_refused() {
        for (bytes, part) in [
            (&b"syntax = \"proto3\";"[..], ".proto source file"),
            (b"\n// shop\n", ".proto source file"),
            (b"\xff\xff\xff", "not a descriptor set"),
            (b"", "no service"),
        ] {
            let sentence = Descriptors::parse(bytes).unwrap_err();
            assert!(sentence.contains(part), "{sentence}");
            assert!(sentence.contains("protoc --include_imports"), "{sentence}");
        }
    }

    #[test]
    fn unknown_syntax_is_refused() {
        assert!(Descriptors::parse(&in_syntax("proto2")).is_ok());
        let sentence = Descriptors::parse(&in_syntax("editions")).unwrap_err();
        let part = "the file \"shop.proto\" of this descriptor set has the syntax \"editions\"";
        assert!(sentence.contains(part), "{sentence}");
    }
}
