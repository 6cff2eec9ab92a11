//! What belongs to a page: it is fetched once, and its HTML says what a browser would fetch for it.

use load::{FetchError, Fetched, Target};
use model::plan::LoadSpec;
use page::{Asset, assets};
use std::sync::atomic::AtomicBool;

/// Why nothing is known of a page.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// It did not come.
    #[error("cannot fetch the page {url}: {why}{}", what_to_do(why))]
    Fetch {
        /// Its address.
        url: String,
        /// Why.
        why: FetchError,
    },
    /// Something else came.
    #[error("the page {url} was answered with status {status}; give the address of the page itself")]
    Status {
        /// Its address.
        url: String,
        /// The status.
        status: u16,
    },
    /// Its address is none.
    #[error(transparent)]
    Address(#[from] page::AddressError),
}

fn what_to_do(why: &FetchError) -> &'static str {
    match why {
        FetchError::Failed(_) => "; is the server there, and the address the page's own?",
        FetchError::Load(_) | FetchError::TooLong => "",
    }
}

/// What a browser would fetch for the page that the load's first request asks for, and whose whole address is `url`. The page
/// is fetched once; redirects are not followed.
///
/// # Errors
/// When the page does not come, or is none.
pub fn page_assets(
    spec: &LoadSpec,
    target: &Target,
    url: &str,
    interrupted: &AtomicBool,
) -> Result<Vec<Asset>, PageError> {
    match load::fetch(spec, target, interrupted) {
        Ok(Fetched { status, body }) if (200..300).contains(&status) => Ok(assets(&body, url)?),
        Ok(Fetched { status, .. }) => Err(PageError::Status { url: url.to_owned(), status }),
        Err(why) => Err(PageError::Fetch { url: url.to_owned(), why }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::scripted::{Refusing, Scripted, Step, answer};

    /// The targets of a page's assets, or what is wrong, by a server's answer.
    #[track_caller]
    fn check(steps: Vec<Step>, expected: Result<&[&str], &str>) {
        let server = Scripted::always(steps);
        let host = server.address().to_string();
        let target = Target::new(server.address(), &host);
        let url = format!("http://{host}/dir/");
        let found = page_assets(&LoadSpec::of("page", "/dir/"), &target, &url, &AtomicBool::new(false));
        let found = found.map_err(|error| error.to_string().replace(&url, "URL"));
        let targets = found.map(|assets| assets.into_iter().map(|asset| asset.target).collect::<Vec<_>>());
        let expected = expected.map(|targets| targets.iter().map(|&target| target.to_owned()).collect());
        assert_eq!(targets, expected.map_err(str::to_owned));
        assert_eq!(server.requests(), 1);
    }

    #[test]
    fn a_page_names_its_assets() {
        let html = "<link rel=stylesheet href=a.css><img src=/b.png>";
        check(vec![Step::Send(answer(200, html))], Ok(&["/dir/a.css", "/b.png"]));
        // A page longer than what checks of answers look at.
        let long = format!("<p>{}</p><img src=late.png>", "x".repeat(400_000));
        check(vec![Step::Send(answer(200, &long))], Ok(&["/dir/late.png"]));
    }

    #[test]
    fn what_is_no_page_is_said() {
        let elsewhere = "the page URL was answered with status 301; give the address of the page itself";
        check(vec![Step::Send(answer(301, ""))], Err(elsewhere));
        let cut = b"HTTP/1.1 200 X\r\nContent-Length: 9\r\n\r\nabc".to_vec();
        let closed = "cannot fetch the page URL: no complete answer: the server closed after 40 bytes of the answer; \
                      is the server there, and the address the page's own?";
        check(vec![Step::Send(cut), Step::Close], Err(closed));
        let refusing = Refusing::start();
        let target = Target::new(refusing.address(), "localhost");
        let error = page_assets(&LoadSpec::of("p", "/"), &target, "http://localhost/", &AtomicBool::new(false));
        assert!(error.unwrap_err().to_string().contains("refused"));
        let huge = "x".repeat((8 << 20) + 1);
        let long = "cannot fetch the page URL: the body is longer than the 8388608 bytes that are kept of one";
        check(vec![Step::Send(answer(200, &huge))], Err(long));
    }
}
