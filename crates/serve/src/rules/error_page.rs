//! Error pages and other formats of error responses.

use std::collections::HashMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use onrush_config::Plan;
use onrush_config::plan::{self, FilePath, PageContent};
use onrush_http::{Header, accept};

use crate::limits::ERROR_PAGE_BYTES_MAX;
use crate::respond::file::media_type;
use crate::worker::plan_issue::{PlanIssue, PlanIssues};

/// Contents of the error page files, read at each reload, because an error may be that files cannot be read.
#[derive(Clone, Debug, Default)]
pub(crate) struct PageFiles(HashMap<PathBuf, Arc<[u8]>>);

impl PageFiles {
    pub(crate) fn read(plan: &Plan, troubles: &mut PlanIssues) -> Self {
        let of_routes = plan.routes.iter().map(|route| &route.error_pages);
        let all = of_routes.chain([&plan.error_pages]);
        let mut files = Self::default();
        for page in all.flat_map(|pages| &pages.pages) {
            if let Some(PageContent::File { file, .. }) = &page.content {
                files.read_one(file, troubles);
            }
        }
        files
    }

    fn read_one(&mut self, path: &FilePath, troubles: &mut PlanIssues) {
        if self.0.contains_key(&**path) {
            return;
        }
        match onrush_file::read(path, ERROR_PAGE_BYTES_MAX) {
            Ok(content) => {
                self.0.insert(path.to_path_buf(), content.into());
            }
            Err(error) => {
                let message = format!("cannot read the error page {}: {error}", path.display());
                troubles.wrong.push(PlanIssue::with(path, message));
            }
        }
    }
}

/// The error pages of a route, or of requests without a route, on one core.
#[derive(Debug)]
pub(crate) struct ErrorPages {
    /// The first match is used.
    pages: Vec<ErrorPage>,
    /// Whether they also replace servers' responses.
    intercept: bool,
}

#[derive(Debug)]
pub(crate) struct ErrorPage {
    statuses: (u16, u16),
    content: Option<Content>,
    /// Seconds, for `Retry-After`.
    pub(crate) retry_after: Option<String>,
}

#[derive(Debug)]
pub(crate) struct Content {
    pub(crate) content_type: String,
    pub(crate) body: Rc<[u8]>,
    is_json: bool,
}

/// Format of an error response without a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum ErrorFormat {
    #[default]
    Text,
    /// Problem details (RFC 9457).
    Json,
}

impl ErrorFormat {
    /// The preferred format of a request with these fields.
    pub(crate) fn of(headers: &[Header<'_>]) -> Self {
        match accept::prefers_json(headers) {
            true => ErrorFormat::Json,
            false => ErrorFormat::Text,
        }
    }
}

impl ErrorPages {
    /// `None` if there are none.
    pub(crate) fn new(plan: &plan::ErrorPages, files: &PageFiles) -> Option<Rc<Self>> {
        if plan.pages.is_empty() {
            return None;
        }
        let page = |page: &plan::ErrorPage| ErrorPage {
            statuses: page.statuses,
            content: page.content.as_ref().map(|it| Content::new(it, files)),
            retry_after: page.retry_after.map(|time| time.as_secs().to_string()),
        };
        Some(Rc::new(Self {
            pages: plan.pages.iter().map(page).collect(),
            intercept: plan.intercept,
        }))
    }

    pub(crate) fn of(&self, status: u16) -> Option<&ErrorPage> {
        let is_for = |page: &&ErrorPage| {
            let (first, last) = page.statuses;
            (first..=last).contains(&status)
        };
        self.pages.iter().find(is_for)
    }

    pub(crate) fn may_intercept(&self) -> bool {
        self.intercept
    }

    /// Whether a server's response with this status is replaced. Never 401, whose challenge is needed to log in.
    pub(crate) fn intercepts(&self, status: u16, form: ErrorFormat) -> bool {
        let page = self.of(status);
        self.intercept && status != 401 && page.is_some_and(|page| page.content_for(form).is_some())
    }
}

impl ErrorPage {
    /// The page for a client that prefers `form`: clients that prefer JSON get only JSON pages.
    pub(crate) fn content_for(&self, form: ErrorFormat) -> Option<&Content> {
        let content = self.content.as_ref();
        content.filter(|content| form == ErrorFormat::Text || content.is_json)
    }
}

impl Content {
    pub(crate) fn is_json(&self) -> bool {
        self.is_json
    }

    fn new(plan: &PageContent, files: &PageFiles) -> Self {
        let (content_type, body) = match plan {
            PageContent::Body { text, content_type } => {
                (content_type.clone(), Rc::from(text.as_bytes()))
            }
            PageContent::File { file, content_type } => {
                let name = file.as_os_str().as_encoded_bytes();
                let content_type = content_type.clone();
                let body = files.0.get(&**file).map(|bytes| &**bytes);
                (
                    content_type.unwrap_or_else(|| media_type(name)),
                    Rc::from(body.expect("it was read before the plan was accepted")),
                )
            }
        };
        let media = content_type.split(';').next().unwrap_or("").trim();
        let is_json = media.eq_ignore_ascii_case("application/json") || media.ends_with("+json");
        Self {
            is_json,
            content_type,
            body,
        }
    }
}
