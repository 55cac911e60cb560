//! Key bindings.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::view::{Mode, StateChange, Table, UpdateMode, View};

/// Action that a key requests from the caller.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Action {
    /// Redraw only.
    Nothing,
    /// Quit.
    End,
    /// Change the state of a server.
    Wish(StateChange),
}

/// Help line with all keys.
pub const HELP: &str =
    "q quit  Tab table  s sort  / filter  p pause  up/down choose  d drain  u bring back";

impl View {
    /// Handles a key press.
    pub fn press(&mut self, key: KeyEvent) -> Action {
        if key.kind == KeyEventKind::Release {
            return Action::Nothing;
        }
        // In raw mode Ctrl-C is an ordinary key.
        if key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL) {
            return Action::End;
        }
        if key
            .modifiers
            .intersects(KeyModifiers::ALT | KeyModifiers::CONTROL)
        {
            return Action::Nothing;
        }
        self.notice.clear();
        match std::mem::take(&mut self.mode) {
            Mode::Normal => self.normal_key(key.code),
            Mode::Filtering => self.filter(key.code),
            Mode::Confirming(wish) => match key.code {
                KeyCode::Char('y' | 'Y') => Action::Wish(wish),
                _ => Action::Nothing,
            },
        }
    }

    fn normal_key(&mut self, key: KeyCode) -> Action {
        match key {
            KeyCode::Char('q') | KeyCode::Esc => return Action::End,
            KeyCode::Tab => self.table = self.table.next(),
            KeyCode::Char(digit @ '1'..='4') => {
                self.table = Table::ALL[digit as usize - '1' as usize].0;
            }
            KeyCode::Char('s') => self.order = self.order.next(),
            KeyCode::Char('/') => self.mode = Mode::Filtering,
            KeyCode::Char('p' | ' ') => {
                self.pace = match self.pace {
                    UpdateMode::Live => UpdateMode::Paused,
                    UpdateMode::Paused => UpdateMode::Live,
                }
            }
            KeyCode::Up => self.row = self.row.saturating_sub(1),
            KeyCode::Down => {
                self.row = (self.row + 1).min(self.servers().len().saturating_sub(1));
            }
            KeyCode::Char('d') => self.confirm("drain"),
            KeyCode::Char('u') => self.confirm("up"),
            _ => {}
        }
        Action::Nothing
    }

    fn filter(&mut self, key: KeyCode) -> Action {
        match key {
            KeyCode::Enter => return Action::Nothing,
            KeyCode::Esc => {
                self.filter.clear();
                return Action::Nothing;
            }
            KeyCode::Backspace => {
                self.filter.pop();
            }
            KeyCode::Char(letter) => self.filter.push(letter),
            _ => {}
        }
        self.mode = Mode::Filtering;
        Action::Nothing
    }

    fn confirm(&mut self, state: &'static str) {
        let chosen = self.servers().get(self.row).map(|server| StateChange {
            group: server.group.clone(),
            address: server.address.clone(),
            state,
        });
        match chosen {
            Some(wish) => self.mode = Mode::Confirming(wish),
            None => self.notice("no server to select".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::moment::{Group, Server, Snapshot, Traffic};

    fn view() -> View {
        let server = |name: &str, rate: f64| Server {
            group: "app".to_owned(),
            address: name.to_owned(),
            traffic: Traffic {
                name: name.to_owned(),
                rate,
                ..Traffic::default()
            },
            ..Server::default()
        };
        let mut view = View::default();
        view.push(Snapshot {
            groups: vec![Group {
                servers: vec![server("a:1", 1.0), server("b:1", 2.0)],
                ..Group::default()
            }],
            ..Snapshot::default()
        });
        view
    }

    fn press(view: &mut View, keys: &str) -> Action {
        let mut asked = Action::Nothing;
        for letter in keys.chars() {
            let code = match letter {
                '\n' => KeyCode::Enter,
                '\t' => KeyCode::Tab,
                'v' => KeyCode::Down,
                letter => KeyCode::Char(letter),
            };
            asked = view.press(KeyEvent::new(code, KeyModifiers::NONE));
        }
        asked
    }

    #[test]
    fn drain_needs_confirmation() {
        let mut view = view();
        assert_eq!(press(&mut view, "dn"), Action::Nothing);
        assert_eq!(
            press(&mut view, "y"),
            Action::Nothing,
            "the no was the answer"
        );
        let wish = |address: &str, state| {
            Action::Wish(StateChange {
                group: "app".to_owned(),
                address: address.to_owned(),
                state,
            })
        };
        assert_eq!(
            press(&mut view, "dy"),
            wish("b:1", "drain"),
            "the busiest is first"
        );
        assert_eq!(press(&mut view, "vvvuy"), wish("a:1", "up"));
        assert_eq!(press(&mut view, "/zz\ndy"), Action::Nothing);
        assert!(view.notice.is_empty());
    }

    #[test]
    fn keys_edit_filter_while_filter_is_open() {
        let mut view = view();
        assert_eq!(press(&mut view, "/b"), Action::Nothing);
        assert_eq!((view.servers().len(), &*view.filter), (1, "b"));
        assert_eq!(press(&mut view, "q"), Action::Nothing);
        assert_eq!(press(&mut view, "\nq"), Action::End);
    }

    #[test]
    fn paused_view_does_not_update() {
        let mut view = view();
        press(&mut view, "p");
        view.push(Snapshot::default());
        assert_eq!(view.servers().len(), 2);
        press(&mut view, "p");
        view.push(Snapshot::default());
        assert_eq!(view.servers().len(), 0);
    }
}
