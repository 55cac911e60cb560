//! The rules that requests pass in a proxy, in HAProxy's order: `http-request`, `redirect`, `use_backend`, `default_backend`.

use super::acl::{Passwords, condition, userlist};
use super::action::{self, Done};
use super::backend;
use super::fetch::split_outside;
use super::moved::narrowed;
use super::proxy::{Kind, Proxy};
use super::sample;
use super::settings;
use super::state::State;
use super::work::Work;
use crate::condition::{Atom, Path};
use crate::decide::{Flow, Formula, Given, TooMany, Unasked, Walk, walk};
use crate::directive::Directive;
use crate::document::Value;
use crate::route::{On, Response, Route};

/// One step.
#[derive(Clone, Debug)]
enum Act<'a> {
    /// `http-response`, `http-after-response`
    Response(&'a Directive),
    Monitor(&'a Directive),
    /// `http-request`
    Request(&'a Directive),
    Redirect(&'a Directive),
    Use(&'a Directive),
    /// A line of a map: the condition's words and the backend.
    Mapped(&'a Directive, Vec<String>, String),
}

impl<'a> Act<'a> {
    fn line(&self) -> &'a Directive {
        match self {
            Act::Response(line)
            | Act::Monitor(line)
            | Act::Request(line)
            | Act::Redirect(line)
            | Act::Use(line)
            | Act::Mapped(line, _, _) => line,
        }
    }
}

/// Makes the routes of a frontend.
///
/// # Errors
/// When there are too many.
pub(super) fn serve<'a>(
    work: &mut Work<'_, 'a>,
    proxies: &[Proxy<'a>],
    proxy: &Proxy<'a>,
    given: Given,
) -> Result<(), TooMany> {
    let comments = [proxy.section.origin()];
    run(work, proxies, proxy, given, State::default(), &comments)
}

fn run<'a>(
    work: &mut Work<'_, 'a>,
    proxies: &[Proxy<'a>],
    proxy: &Proxy<'a>,
    given: Given,
    mut state: State,
    comments: &[String],
) -> Result<(), TooMany> {
    settings::read(work, proxy, &mut state);
    let acts = gather(work, proxy);
    let mut rules = Rules {
        work,
        proxies,
        proxy,
        comments,
    };
    walk(&acts, given, state, &mut rules)
}

fn gather<'a>(work: &mut Work<'_, 'a>, proxy: &Proxy<'a>) -> Vec<Act<'a>> {
    let mut acts: Vec<Act<'a>> = proxy
        .lines
        .iter()
        .filter(|line| matches!(line.name(), "http-response" | "http-after-response"))
        .map(|line| Act::Response(line))
        .collect();
    acts.extend(proxy.last(&["monitor-uri"]).map(Act::Monitor));
    acts.extend(proxy.all(&["http-request"]).map(Act::Request));
    acts.extend(proxy.all(&["redirect"]).map(Act::Redirect));
    if proxy.kind == Kind::Backend {
        return acts;
    }
    for line in proxy.all(&["use_backend"]) {
        match line.argument(0).strip_prefix("%[") {
            None => acts.push(Act::Use(line)),
            Some(sample) => match mapped(work, sample.trim_end_matches(']')) {
                Ok(lines) => acts.extend(
                    lines
                        .into_iter()
                        .map(|(words, name)| Act::Mapped(line, words, name)),
                ),
                Err(why) => work.notes.left_out(line, why),
            },
        }
    }
    acts
}

/// The lines of a map as conditions with their values; the default has none.
fn mapped(work: &Work<'_, '_>, text: &str) -> Result<Vec<(Vec<String>, String)>, String> {
    let dynamic = || "backends have names: they are not made of samples, but by maps".to_owned();
    let parts = split_outside(text, ',');
    let (map, sample) = parts.split_last().ok_or_else(dynamic)?;
    let (kind, arguments) = map.split_once('(').ok_or_else(dynamic)?;
    let arguments = arguments.trim_end_matches(')');
    let (file, default) = match arguments.split_once(',') {
        Some((file, default)) => (file, Some(default)),
        None => (arguments, None),
    };
    let method = match kind {
        "map" | "map_str" => "str",
        "map_beg" => "beg",
        "map_end" => "end",
        "map_sub" => "sub",
        "map_dom" => "dom",
        "map_reg" => "reg",
        "map_dir" => "dir",
        "map_ip" => "ip",
        _ => return Err(dynamic()),
    };
    let mut mapped = Vec::new();
    for line in work.lines_of(file)? {
        let Some((key, value)) = line.split_once(char::is_whitespace) else {
            continue;
        };
        let words = [&sample.join(","), "-m", method, key].map(str::to_owned);
        mapped.push((words.into(), value.trim().to_owned()));
    }
    mapped.extend(default.map(|default| (Vec::new(), default.to_owned())));
    Ok(mapped)
}

struct Rules<'w, 'f, 'a> {
    work: &'w mut Work<'f, 'a>,
    proxies: &'w [Proxy<'a>],
    proxy: &'w Proxy<'a>,
    comments: &'w [String],
}

impl<'a> Walk<Act<'a>> for Rules<'_, '_, 'a> {
    type State = State;

    fn when(&mut self, act: &Act<'a>, state: &State) -> Formula {
        let line = act.line();
        let formula = match act {
            Act::Request(_) if state.is_allowed => return Formula::never(),
            Act::Request(_) if action::says_client(line) => {
                self.work.forwards_clients = true;
                self.work.notes.carried(line);
                return Formula::never();
            }
            Act::Monitor(line) => {
                let path = Path::Exact(line.argument(0).to_owned());
                return Formula::Atom(Atom::Path(path));
            }
            Act::Mapped(_, words, _) if words.is_empty() => Ok(Formula::always()),
            Act::Mapped(_, words, _) => sample::formula(self.work, words),
            Act::Request(_) if line.argument(0) == "auth" => {
                condition(self.work, self.proxy, line, Passwords::NotGiven)
            }
            Act::Request(_) | Act::Response(_) | Act::Redirect(_) | Act::Use(_) => {
                condition(self.work, self.proxy, line, Passwords::Unknown)
            }
        };
        let formula = formula.and_then(|formula| match act {
            Act::Request(_) => narrowed(line, formula),
            _ => Ok(formula),
        });
        formula.unwrap_or_else(|why| {
            self.work.notes.left_out(line, why);
            Formula::never()
        })
    }

    fn inside(&self, _act: &Act<'a>) -> usize {
        0
    }

    fn apply(&mut self, act: &Act<'a>, state: &mut State, given: &Given) -> Result<Flow, TooMany> {
        let line = act.line();
        let response = match act {
            Act::Response(_) => {
                action::response(self.work, line, state);
                return Ok(Flow::On);
            }
            Act::Monitor(_) => {
                self.work.notes.carried(line);
                let how = "the body is empty; HAProxy has a page of its own";
                self.work.notes.approximated(line, how);
                Response::status(200)
            }
            Act::Redirect(_) => action::redirect(self.work, line, 1, state),
            Act::Request(_) => {
                let userlist = userlist(self.proxy, line);
                match action::request(self.work, line, userlist, state) {
                    Done::On => return Ok(Flow::On),
                    Done::Allowed => {
                        state.is_allowed = true;
                        return Ok(Flow::On);
                    }
                    Done::Served(response) => response,
                }
            }
            Act::Use(_) => {
                self.enter(line, line.argument(0), state.clone(), given)?;
                return Ok(Flow::End);
            }
            Act::Mapped(_, _, name) => {
                self.enter(line, name, state.clone(), given)?;
                return Ok(Flow::End);
            }
        };
        self.push(Some(line), response, state, given)?;
        Ok(Flow::End)
    }

    fn end(&mut self, state: State, given: &Given) -> Result<(), TooMany> {
        if self.proxy.kind == Kind::Backend {
            return self.forward(&state, given);
        }
        match self.proxy.last(&["default_backend"]) {
            Some(line) => self.enter(line, line.argument(0), state, given),
            None => self.forward(&state, given),
        }
    }

    fn inexpressible(&mut self, act: &Act<'a>, _state: &State) -> Unasked {
        let why = "Onrush cannot ask for this together with the conditions before it";
        self.work.notes.left_out(act.line(), why);
        Unasked::Skipped
    }

    fn step(&mut self) -> Result<(), TooMany> {
        self.work.budget.step()
    }
}

impl<'a> Rules<'_, '_, 'a> {
    /// Goes on in a backend.
    fn enter(
        &mut self,
        line: &'a Directive,
        name: &str,
        mut state: State,
        given: &Given,
    ) -> Result<(), TooMany> {
        let is_backend = |proxy: &&Proxy<'a>| proxy.name() == name && proxy.kind != Kind::Frontend;
        let Some(backend) = self.proxies.iter().find(is_backend) else {
            let why = format!("there is no backend {name:?}; the response is 503");
            self.work.notes.left_out(line, why);
            return self.push(Some(line), Response::status(503), &state, given);
        };
        if !backend.is_http() {
            let why =
                format!("backend {name:?} does not speak HTTP (mode http); the response is 503");
            self.work.notes.left_out(line, why);
            return self.push(Some(line), Response::status(503), &state, given);
        }
        self.work.notes.carried(line);
        self.work.notes.carried(backend.section);
        state.is_allowed = false;
        let comments = [self.comments, &[line.origin()]].concat();
        // What is only a backend here has no way on but its servers.
        let backend = Proxy {
            kind: Kind::Backend,
            ..backend.clone()
        };
        run(
            self.work,
            self.proxies,
            &backend,
            given.clone(),
            state,
            &comments,
        )
    }

    fn forward(&mut self, state: &State, given: &Given) -> Result<(), TooMany> {
        match backend::group(self.work, self.proxy) {
            Some(group) => self.push(None, Response::Forward(group), state, given),
            None => {
                // HAProxy, too, has nobody to ask.
                self.push(None, Response::status(503), state, given)
            }
        }
    }

    fn push(
        &mut self,
        line: Option<&Directive>,
        response: Response,
        state: &State,
        given: &Given,
    ) -> Result<(), TooMany> {
        let mut route = Route::new(given.condition.clone(), response);
        route.comments = self.comments.to_vec();
        route.comments.extend(line.map(Directive::origin));
        route.comments.dedup();
        route.response_headers = match &route.response {
            Response::Forward(_) => state.response.and(&state.after),
            _ => state.after.clone(),
        };
        if let Some(cookie) = &state.redirect_cookie
            && let Response::Redirect { .. } = route.response
        {
            route.response_headers.add("Set-Cookie", cookie);
        }
        if !state.after.is_empty() {
            route.response_on = On::Always;
        }
        if let Response::Redirect {
            status: status @ (302 | 303),
            ..
        } = route.response
            && !route.response_headers.changes("Cache-Control")
        {
            // What HAProxy says of these by itself.
            let rule = [
                ("status", Value::Number(status.into())),
                ("value", Value::text("no-cache")),
            ];
            route.put("cache_control", Value::table(rule));
        }
        if let Some(auth) = &state.auth {
            route.put("basic_auth", auth.clone());
        }
        if let Response::Forward(_) = route.response {
            route.request_headers = state.request.clone();
            if state.is_forwarded {
                // What is taken there is the client's own word, which Onrush does not pass on; its own comes later in HAProxy.
                route.request_headers.keep("X-Forwarded-For");
            }
            if let Some(compress) = &state.compress {
                route.put("compress", compress.clone());
            }
            if let Some((prefix, replacement)) = &state.moved
                && route.replace_prefix(prefix, replacement).is_err()
                && let Some(line) = line
            {
                let why = "the beginning of the path is replaced, and the route has no prefix";
                self.work.notes.left_out(line, why);
            }
        }
        self.work.push(route)
    }
}
