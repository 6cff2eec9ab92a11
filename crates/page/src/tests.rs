//! Pages and what they need, through one door.

use super::*;
use expect_test::{Expect, expect};
use proptest::prelude::*;

/// The one door: a page at `http://x.example/dir/page.html`, and its assets, shortened.
fn check(html: &str, expected: &Expect) {
    let found = assets(html.as_bytes(), "http://x.example/dir/page.html").unwrap();
    let lines = found.iter().map(|asset| {
        let lazy = if asset.loading == Loading::Lazy { " lazy" } else { "" };
        let shown = if asset.origin == Origin::Same { &asset.target } else { &asset.url };
        assert!(asset.url.ends_with(&asset.target));
        format!("{:?} {shown}{lazy}", asset.kind)
    });
    expected.assert_eq(&lines.collect::<Vec<_>>().join(", "));
}

#[test]
fn a_page_as_they_are() {
    check(
        r#"<!DOCTYPE html><html><head><meta charset=utf-8><title><img src=title.png></title>
        <link rel="preload" href="/font.woff2" as="font" crossorigin><link rel=stylesheet href="style.css?v=1&amp;w=2">
        <link rel="alternate" href="/feed"><link rel="shortcut icon" href=/old.ico><link rel=icon href=/new.svg>
        <link rel=preconnect href="//cdn.example"><link rel=modulepreload href=mod.js>
        <style>@import "more.css"; body { background: url(../back.png) }</style>
        <script src="//cdn.example/lib.js" defer></script><script>document.write("<img src=written.png>")</script>
        <script type="application/json" src="data.json"></script><script nomodule src=old.js></script>
        </head><body style="color: red; background: url('over.png')">
        <!-- <img src=comment.png> --><img src="logo.png#x" alt=""><img src="logo.png"><img src="data:image/gif;base64,R0">
        <img loading=lazy src=far.png srcset="far2.png 2x"><a href=other.html>x</a>
        <noscript><img src=noscript.png></noscript><template><img src=template.png></template>
        <form><input type=IMAGE src=button.png><input src=text.png></form>
        <iframe src="/frame.html" loading="lazy"></iframe><iframe src="about:blank"></iframe></body></html>"#,
        &expect![
            "Font /font.woff2, Style /dir/style.css?v=1&w=2, Script /dir/mod.js, Style /dir/more.css, Image /back.png, Script http://cdn.example/lib.js, Image /dir/over.png, Image /dir/logo.png, Image /dir/far.png lazy, Image /dir/button.png, Frame /frame.html lazy, Icon /new.svg"
        ],
    );
}

#[test]
fn the_first_base_counts() {
    check(
        "<img src=a><base href=/b/><base href=/c/><img src=d><base target=_top>",
        &expect!["Image /dir/a, Image /b/d"],
    );
    check("<base href=//y.example/><img src=a>", &expect!["Image http://y.example/a"]);
    check("<base href=data:,x><img src=a>", &expect!["Image /dir/a"]);
    check(&format!("<base href=/{}/><img src=a>", "b".repeat(8192)), &expect!["Image /dir/a"]);
}

#[test]
fn one_picture_of_several() {
    check("<img srcset='a 1x, b 2x' src=c>", &expect!["Image /dir/a"]);
    check("<img srcset='a 300w, b 1500w' sizes=300px>", &expect!["Image /dir/a"]);
    check(
        "<picture><source media='(max-width: 500px)' srcset=s><source type=image/jxl srcset=j><source type=image/webp srcset='w, w2 2x'><source srcset=t><img src=p loading=lazy></picture><img src=q>",
        &expect!["Image /dir/w lazy, Image /dir/q"],
    );
    check("<picture><source media=print srcset=s><img src=p></picture><source srcset=r>", &expect!["Image /dir/p"]);
    check("<link rel=preload as=image href=a imagesrcset='b 2x, c 1x'>", &expect!["Image /dir/c"]);
    check(
        "<svg><image href=a.png /><use xlink:href='s.svg#one'/><use href='#two'/></svg>",
        &expect!["Image /dir/a.png, Image /dir/s.svg"],
    );
}

#[test]
fn media() {
    check("<video poster=p src=v></video>", &expect!["Image /dir/p, Media /dir/v"]);
    check(
        "<video poster=p preload=none src=v></video><audio preload=none><source src=a></audio>",
        &expect!["Image /dir/p"],
    );
    check("<video><source src=a.webm><source src=a.mp4></video><source src=b>", &expect!["Media /dir/a.webm"]);
    check(
        "<object data=o></object><embed src=e><iframe srcdoc='x' src=f></iframe>",
        &expect!["Other /dir/o, Other /dir/e"],
    );
}

#[test]
fn known_ones_are_kept_once() {
    check("<img src=a loading=lazy><img src=./a><img src=a?>", &expect!["Image /dir/a, Image /dir/a?"]);
    check("<img src=a><img src=a loading=lazy><link rel='icon stylesheet' href=a>", &expect!["Image /dir/a"]);
}

#[test]
fn what_cannot_be_fetched() {
    check(
        "<img src=''><img src=' '><img src><img src='#x'><img src='http://'><img src=javascript:x><img src='blob:x'>",
        &expect![""],
    );
    check(
        "<link href=a><link rel=stylesheet><link rel=stylesheet disabled href=b><link rel=stylesheet type=text/less href=c>",
        &expect![""],
    );
}

#[test]
fn damaged_pages() {
    check("<img src=a", &expect![""]);
    check("<IMG SRC='a\n b.png' src=second>", &expect!["Image /dir/a%20b.png"]);
    check("<style>p{background:url(a)", &expect!["Image /dir/a"]);
    check("</template></picture><img src=a></noscript>", &expect!["Image /dir/a"]);
    check("<template><template></template><img src=a></template><img src=b>", &expect!["Image /dir/b"]);
    check("<textarea><img src=a></textarea><noscript><img src=b></noscript><style/><img src=c>", &expect![""]);
}

#[test]
fn addresses_of_pages() {
    for page in ["", "/index.html", "ftp://x/", "data:,x", "http://"] {
        assert!(assets(b"", page).is_err(), "{page}");
    }
    let found = assets(b"<img src=//x.example:80/a><img src=https://x.example/a>", "http://x.example").unwrap();
    assert_eq!([found[0].origin, found[1].origin], [Origin::Same, Origin::Foreign]);
}

proptest! {
    #[test]
    fn any_bytes_are_answered(bytes: Vec<u8>, words in prop::collection::vec(prop::sample::select(WORDS.to_vec()), 0..20)) {
        for html in [bytes.as_slice(), words.concat().as_bytes()] {
            let found = assets(html, "http://x.example/").unwrap();
            let mut urls: Vec<_> = found.iter().map(|asset| &asset.url).collect();
            urls.sort();
            urls.dedup();
            prop_assert_eq!(urls.len(), found.len());
            prop_assert!(found.iter().all(|asset| asset.target.starts_with('/') && !asset.target.contains([' ', '#'])));
        }
    }
}

/// Pieces of pages, which come closer to the edges than random bytes do.
const WORDS: [&str; 16] = [
    "<img src=",
    "a.png",
    "\"",
    "'",
    ">",
    " srcset='",
    "a 2x, b 1w",
    "<picture>",
    "<source ",
    "<style>",
    "url(",
    "</style>",
    "<base href=",
    "//y/",
    "<template>",
    "<!--",
];
