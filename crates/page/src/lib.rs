//! What a browser fetches for a page: HTML in, addresses out. No sockets.
//!
//! [`assets`] reads one document and lists what its markup and inline styles name, in document order and the
//! icon last, each once. It stands in
//! for a browser with a screen of [`VIEWPORT_PX`] at one dot per pixel, that runs scripts and has seen nothing of the page
//! before: of several sizes or formats of a picture it takes one, and what is for browsers without scripts it skips.
//!
//! It deliberately runs no script, and opens none of what it lists: images named by a style sheet of its own, what frames
//! contain, and what scripts load are not found. Nor is `/favicon.ico`, which browsers ask for unasked.
//!
//! ```
//! use page::{Asset, Kind, Loading, Origin, assets};
//!
//! let found = assets(b"<img src=a.png loading=lazy><img src='//cdn.example/b.png'>", "http://x.example/dir/").unwrap();
//! let Asset { url, target, kind, origin, loading } = &found[0];
//! assert_eq!((url.as_str(), target.as_str()), ("http://x.example/dir/a.png", "/dir/a.png"));
//! assert_eq!((*kind, *origin, *loading), (Kind::Image, Origin::Same, Loading::Lazy));
//! assert_eq!(found[1].origin, Origin::Foreign);
//! ```

mod candidates;
mod css;
mod markup;

use std::collections::HashMap;
use url::Url;

/// The width of the screen that decides between candidates of a picture.
pub const VIEWPORT_PX: f64 = 1280.0;

/// Something that a browser fetches for a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asset {
    /// Its whole address, without fragment.
    pub url: String,
    /// Path and query of it: what a request line holds.
    pub target: String,
    /// What it is for.
    pub kind: Kind,
    /// Whose it is.
    pub origin: Origin,
    /// When it is fetched.
    pub loading: Loading,
}

/// What an asset is for, as the page says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A style sheet.
    Style,
    /// A script.
    Script,
    /// A picture, also a video's poster.
    Image,
    /// The picture of the tab.
    Icon,
    /// A font.
    Font,
    /// A video or a sound.
    Media,
    /// A document inside the page.
    Frame,
    /// Anything else that is loaded early or embedded.
    Other,
}

/// Whether an asset comes from where the page came from: scheme, host and port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// From there.
    Same,
    /// From somewhere else.
    Foreign,
}

/// When an asset is fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loading {
    /// With the page.
    Eager,
    /// When it comes near to what is seen (`loading="lazy"`).
    Lazy,
}

/// A page's address that is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not the address of a page: write it whole, such as http://localhost:8080/index.html")]
pub struct AddressError(String);

/// What a browser would fetch for the page whose HTML this is. HTML of any kind is read as browsers do; it is taken for UTF-8.
///
/// # Errors
/// When the page's address is not a whole one of http or https.
pub fn assets(html: &[u8], page: &str) -> Result<Vec<Asset>, AddressError> {
    let page = Url::parse(page).ok().filter(is_http).ok_or_else(|| AddressError(page.to_owned()))?;
    let mut listing = Listing { base: page.clone(), page, found: Vec::new(), places: HashMap::new() };
    markup::read(html, &mut listing);
    Ok(listing.found)
}

/// The assets so far, and what addresses are relative to.
struct Listing {
    page: Url,
    base: Url,
    found: Vec<Asset>,
    places: HashMap<String, usize>,
}

impl Listing {
    /// Takes what an attribute or a style names; what cannot be fetched by itself is dropped.
    fn add(&mut self, named: &str, kind: Kind, loading: Loading) {
        let named = named.trim_ascii();
        if named.is_empty() || named.starts_with('#') {
            return;
        }
        let Some(mut url) = self.base.join(named).ok().filter(is_http) else { return };
        url.set_fragment(None);
        let origin = if url.origin() == self.page.origin() { Origin::Same } else { Origin::Foreign };
        let target = url[url::Position::BeforePath..url::Position::AfterQuery].to_owned();
        let url = String::from(url);
        if let Some(place) = self.places.get(&url) {
            let known = &mut self.found[*place];
            if loading == Loading::Eager {
                known.loading = Loading::Eager;
            }
            return;
        }
        self.places.insert(url.clone(), self.found.len());
        self.found.push(Asset { url, target, kind, origin, loading });
    }
}

fn is_http(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https") && url.has_host()
}

#[cfg(test)]
mod tests;
