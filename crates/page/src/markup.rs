//! The elements of a document that name something to fetch.
//!
//! Tokens, not a tree: which elements stand inside others matters only for `picture`, `video` and `audio`, and for `template`,
//! whose content is not fetched. The tokenizer takes what `noscript` holds for text, as browsers with scripts do.

use crate::{Kind, Listing, Loading, candidates, css};
use html5gum::emitters::default::{DefaultEmitter, StartTag};
use html5gum::{HtmlString, Token, Tokenizer};
use std::borrow::Cow;

/// Adds what the document names.
pub(crate) fn read(html: &[u8], listing: &mut Listing) {
    let mut emitter = DefaultEmitter::default();
    emitter.naively_switch_states(true);
    let mut document = Document { listing, base: Base::Page, templates: 0, inside: Inside::Nothing, icon: None };
    let mut style: Option<Vec<u8>> = None;
    for Ok(token) in Tokenizer::new_with_emitter(html, emitter) {
        match token {
            Token::StartTag(tag) => {
                // What stands between the tags of a style is text, whatever it looks like.
                style = (*tag.name == *b"style").then(Vec::new);
                document.start(&Tag(&tag));
            }
            Token::String(text) => {
                if let Some(style) = &mut style {
                    style.extend(&text.value.0);
                }
            }
            Token::EndTag(tag) => {
                if let Some(style) = style.take() {
                    document.style(&String::from_utf8_lossy(&style));
                }
                document.end(&tag.name);
            }
            Token::Comment(_) | Token::Doctype(_) | Token::Error(_) => {}
        }
    }
    // A page cut off inside a style.
    if let Some(style) = style {
        document.style(&String::from_utf8_lossy(&style));
    }
    // Of several icons a browser takes the last that fits.
    if let Some(icon) = document.icon {
        listing.add(&icon, Kind::Icon, Loading::Eager);
    }
}

struct Document<'a> {
    listing: &'a mut Listing,
    base: Base,
    /// How many are open; what stands inside is not fetched.
    templates: usize,
    inside: Inside,
    icon: Option<String>,
}

/// The longest address of a `base` that counts: servers take no longer request lines.
const LONGEST_BASE: usize = 8192;

/// What addresses are relative to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Base {
    Page,
    /// The first `base` with an address counts.
    Element,
}

/// An element whose sources are alternatives.
enum Inside {
    Nothing,
    /// A picture, and the source that fits.
    Picture(Option<String>),
    /// A video or sound that is still without a source.
    Media,
}

impl Document<'_> {
    fn start(&mut self, tag: &Tag<'_>) {
        let name: &[u8] = &tag.0.name;
        if name == b"template" {
            self.templates += 1;
        }
        if self.templates > 0 {
            return;
        }
        match name {
            b"base" => self.base(tag),
            b"link" => self.link(tag),
            b"script" => self.script(tag),
            b"img" => self.img(tag),
            b"image" | b"feImage" | b"feimage" | b"use" => self.drawing(tag),
            b"picture" => self.inside = Inside::Picture(None),
            b"source" => self.source(tag),
            b"video" | b"audio" => self.media(tag),
            b"iframe" | b"frame" if tag.get("srcdoc").is_none() => self.add(tag, "src", Kind::Frame),
            b"embed" => self.add(tag, "src", Kind::Other),
            b"object" => self.add(tag, "data", Kind::Other),
            b"input" if tag.is("type", &["image"]) => self.add(tag, "src", Kind::Image),
            _ => {}
        }
        if let Some(style) = tag.get("style") {
            self.style(&style);
        }
    }

    fn end(&mut self, name: &[u8]) {
        if name == b"template" {
            self.templates = self.templates.saturating_sub(1);
        } else if matches!(name, b"picture" | b"video" | b"audio") {
            self.inside = Inside::Nothing;
        }
    }

    fn style(&mut self, style: &str) {
        if self.templates == 0 {
            for (named, kind) in css::named(style) {
                self.listing.add(&named, kind, Loading::Eager);
            }
        }
    }

    fn base(&mut self, tag: &Tag<'_>) {
        let Some(href) = tag.get("href").filter(|_| self.base == Base::Page) else { return };
        self.base = Base::Element;
        // Every address that follows is joined to it: a hostile one would be copied as often.
        let usable = |base: &url::Url| crate::is_http(base) && base.as_str().len() <= LONGEST_BASE;
        if let Some(base) = self.listing.page.join(href.trim_ascii()).ok().filter(usable) {
            self.listing.base = base;
        }
    }

    fn link(&mut self, tag: &Tag<'_>) {
        let Some(href) = tag.get("href") else { return };
        let rel = tag.get("rel").unwrap_or_default().to_ascii_lowercase();
        let has = |word: &str| rel.split_ascii_whitespace().any(|other| other == word);
        if has("stylesheet") && tag.get("disabled").is_none() && tag.is_or_absent("type", &["text/css"]) {
            self.listing.add(&href, Kind::Style, Loading::Eager);
        }
        if has("icon") {
            self.icon = Some(href.clone().into_owned());
        }
        if has("modulepreload") {
            self.listing.add(&href, Kind::Script, Loading::Eager);
        }
        if has("preload") && candidates::holds(&tag.get("media").unwrap_or_default()) {
            let wanted = tag.get("as").unwrap_or_default().to_ascii_lowercase();
            let kind = match wanted.as_str() {
                "style" => Kind::Style,
                "script" => Kind::Script,
                "image" => Kind::Image,
                "font" => Kind::Font,
                "video" | "audio" => Kind::Media,
                _ => Kind::Other,
            };
            let (srcset, sizes) = (tag.get("imagesrcset"), tag.get("imagesizes"));
            let one = srcset.as_deref().and_then(|set| candidates::chosen(set, sizes.as_deref(), Some(&href)));
            self.listing.add(one.unwrap_or(&href), kind, Loading::Eager);
        }
    }

    fn script(&mut self, tag: &Tag<'_>) {
        const JAVASCRIPT: [&str; 5] =
            ["", "module", "text/javascript", "application/javascript", "application/x-javascript"];
        if tag.get("nomodule").is_none() && tag.is_or_absent("type", &JAVASCRIPT) {
            // In a drawing it is href.
            let attribute = if tag.get("src").is_some() { "src" } else { "href" };
            self.add(tag, attribute, Kind::Script);
        }
    }

    fn img(&mut self, tag: &Tag<'_>) {
        let own = tag.picture(tag.get("src").as_deref());
        let of_source = match &mut self.inside {
            Inside::Picture(source) => source.take(),
            Inside::Nothing | Inside::Media => None,
        };
        if let Some(one) = of_source.or(own) {
            self.listing.add(&one, Kind::Image, tag.loading());
        }
    }

    fn drawing(&mut self, tag: &Tag<'_>) {
        let attribute = ["href", "xlink:href", "src"].into_iter().find(|name| tag.get(name).is_some());
        self.add(tag, attribute.unwrap_or("href"), Kind::Image);
    }

    fn source(&mut self, tag: &Tag<'_>) {
        if !candidates::holds(&tag.get("media").unwrap_or_default()) {
            return;
        }
        match &mut self.inside {
            Inside::Picture(source @ None) if tag.is_shown() => *source = tag.picture(None),
            Inside::Media => {
                self.inside = Inside::Nothing;
                self.add(tag, "src", Kind::Media);
            }
            Inside::Picture(_) | Inside::Nothing => {}
        }
    }

    fn media(&mut self, tag: &Tag<'_>) {
        self.add(tag, "poster", Kind::Image);
        let waits = tag.is("preload", &["none"]) && tag.get("autoplay").is_none();
        self.inside = if waits || tag.get("src").is_some() { Inside::Nothing } else { Inside::Media };
        if !waits {
            self.add(tag, "src", Kind::Media);
        }
    }

    fn add(&mut self, tag: &Tag<'_>, attribute: &str, kind: Kind) {
        if let Some(named) = tag.get(attribute) {
            self.listing.add(&named, kind, tag.loading());
        }
    }
}

/// An element's start and its attributes.
struct Tag<'a>(&'a StartTag<()>);

impl<'a> Tag<'a> {
    fn get(&self, name: &str) -> Option<Cow<'a, str>> {
        let value = self.0.attributes.get(&HtmlString(name.as_bytes().to_vec()))?;
        Some(String::from_utf8_lossy(&value.value.0))
    }

    /// Whether an attribute has one of these values, in any case.
    fn is(&self, name: &str, values: &[&str]) -> bool {
        self.get(name).is_some_and(|found| values.iter().any(|value| found.trim_ascii().eq_ignore_ascii_case(value)))
    }

    fn is_or_absent(&self, name: &str, values: &[&str]) -> bool {
        self.get(name).is_none() || self.is(name, values)
    }

    fn loading(&self) -> Loading {
        if self.is("loading", &["lazy"]) { Loading::Lazy } else { Loading::Eager }
    }

    /// The picture that `srcset` and `src` leave.
    fn picture(&self, src: Option<&str>) -> Option<String> {
        let (srcset, sizes) = (self.get("srcset"), self.get("sizes"));
        candidates::chosen(&srcset.unwrap_or_default(), sizes.as_deref(), src).map(str::to_owned)
    }

    /// Whether a browser of today can show pictures of this type.
    fn is_shown(&self) -> bool {
        const SHOWN: [&str; 8] = [
            "image/avif",
            "image/webp",
            "image/png",
            "image/jpeg",
            "image/gif",
            "image/svg+xml",
            "image/apng",
            "image/bmp",
        ];
        self.is_or_absent("type", &SHOWN)
    }
}
