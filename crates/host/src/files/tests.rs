//! Every step of a change to a file of others, given back.

use super::*;
use crate::process::{Identity, Namespace};
use rustix::mount::{MountPropagationFlags, UnmountFlags};
use std::os::unix::ffi::OsStrExt;
use std::sync::{Mutex, MutexGuard, PoisonError};

fn head() -> Head {
    let owner = Identity { pid: 1, start_time: 1 };
    Head { run: "r1".into(), owner, boot: String::new(), namespace: Namespace::default() }
}

fn lent(folder: &Path, existed: bool, ours: Option<&[&str]>) -> Lent {
    let facts = fs::metadata(folder).unwrap();
    Lent {
        path: folder.join(if ours.is_some() { "php.ini" } else { "zz-webdyno-r1-x.conf" }),
        kept: existed.then(|| folder.join(".webdyno-r1-x")),
        fresh: folder.join(".webdyno-r1-x-new"),
        over: ours.map(|_| folder.join(".webdyno-r1-x-over")),
        ours: ours.map(|ours| ours.iter().map(|content| mark(content.as_bytes())).collect()),
        folder_changed: (facts.mtime(), facts.mtime_nsec()),
    }
}

fn facts(path: &Path) -> (u64, u32, i64, i64, String) {
    let facts = fs::metadata(path).unwrap();
    (facts.ino(), facts.mode(), facts.mtime(), facts.mtime_nsec(), fs::read_to_string(path).unwrap())
}

/// A file with something in it, lent at this step of a change, and what giving it back says.
fn check(step: impl Fn(&Lent), said: Option<&str>, stays: &str) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("php.ini");
    fs::write(&path, "before").unwrap();
    let before = facts(&path);
    let lent = lent(dir.path(), true, Some(&["ours", "also ours"]));
    let folder = (lent.folder_changed.0, lent.folder_changed.1);
    step(&lent);
    let foreseen = foresee(&lent);
    for expected in [said.map(str::to_owned), None] {
        let got = give_back(&lent, &head()).unwrap().map(|said| said.replace(&*dir.path().to_string_lossy(), "DIR"));
        assert_eq!(got, expected, "and nothing the second time");
    }
    assert_eq!(foreseen.is_some(), said.is_some());
    assert_eq!(fs::read_to_string(&path).unwrap(), stays);
    if stays == "before" {
        assert_eq!(facts(&path), before);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing is left");
    }
    let now = fs::metadata(dir.path()).unwrap();
    assert_eq!((now.mtime(), now.mtime_nsec()), folder);
}

#[test]
fn every_step_of_a_change_is_given_back() {
    let put = |lent: &Lent, content: &str| {
        fs::write(&lent.fresh, content).unwrap();
        fs::rename(&lent.fresh, &lent.path).unwrap();
    };
    let back = Some("gave back the file DIR/php.ini");
    check(|_| {}, None, "before");
    check(link, None, "before");
    check(
        |lent| {
            link(lent);
            fs::write(&lent.fresh, "ou").unwrap();
        },
        None,
        "before",
    );
    check(
        |lent| {
            link(lent);
            put(lent, "ours");
        },
        back,
        "before",
    );
    check(
        |lent| {
            link(lent);
            put(lent, "also ours");
            fs::write(&lent.fresh, "x").unwrap();
        },
        back,
        "before",
    );
    check(
        |lent| {
            link(lent);
            fs::remove_file(&lent.path).unwrap();
        },
        back,
        "before",
    );
    let others =
        "DIR/php.ini was changed by somebody else and stays so; what it was before is in DIR/php.ini.before-webdyno";
    check(
        |lent| {
            link(lent);
            put(lent, "ours, and more");
        },
        Some(others),
        "ours, and more",
    );
    let numbered = format!("{others}-2");
    check(
        |lent| {
            link(lent);
            fs::write(format!("{}.before-webdyno", lent.path.display()), "of an earlier accident").unwrap();
            put(lent, "ours, and more");
        },
        Some(&numbered),
        "ours, and more",
    );
}

/// A step, what giving back says after it, and what the file says then.
type Check<'a> = (&'a dyn Fn(&Lent), Option<&'a str>, &'a str);

/// A folder in which files can be covered.
struct Coverable {
    dir: tempfile::TempDir,
    lent: Lent,
    /// One test after another: what has mounts of its own keeps others from covering a file.
    _alone: MutexGuard<'static, ()>,
}

impl Coverable {
    /// With a file in it that was linked, if one `existed`; `None`, with the reason said, where nothing can be covered.
    fn new(existed: bool) -> Option<Coverable> {
        static ALONE: Mutex<()> = Mutex::new(());
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        if !testkit::skip::can_mount() {
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        let lent = lent(dir.path(), existed, Some(&["ours", ""]));
        if existed {
            fs::write(&lent.path, "before").unwrap();
            link(&lent);
        }
        Some(Coverable { dir, lent, _alone: alone })
    }
}

fn link(lent: &Lent) {
    fs::hard_link(&lent.path, lent.kept.as_ref().unwrap()).unwrap();
}

/// Lays this over the file, if it may be laid there.
fn try_cover(lent: &Lent, content: &str) -> io::Result<()> {
    let over = lent.over.as_ref().unwrap();
    fs::write(over, content).unwrap();
    lent.cover(over, &File::open(over).unwrap())
}

fn cover(lent: &Lent, content: &str) {
    try_cover(lent, content).unwrap();
    assert_eq!(fs::read_to_string(&lent.path).unwrap(), content);
}

#[test]
fn every_step_of_what_lies_over_a_file_is_given_back() {
    let Some(_coverable) = Coverable::new(false) else { return };
    let link_and_cover = |lent: &Lent| {
        link(lent);
        cover(lent, "ours");
    };
    let take_off = |lent: &Lent| assert!(lent.take_off().unwrap() && !lent.take_off().unwrap());
    let back = Some("gave back the file DIR/php.ini");
    let others =
        "DIR/php.ini was changed by somebody else and stays so; what it was before is in DIR/php.ini.before-webdyno";
    let checks: [Check<'_>; 7] = [
        (&link_and_cover, back, "before"),
        (
            // Its name goes, and it lies there still.
            &|lent| {
                link_and_cover(lent);
                fs::remove_file(lent.over.as_ref().unwrap()).unwrap();
            },
            back,
            "before",
        ),
        (
            &|lent| {
                // A boot, or a kill before the next step.
                link_and_cover(lent);
                take_off(lent);
            },
            None,
            "before",
        ),
        (
            &|lent| {
                link_and_cover(lent);
                lent.uncover().unwrap();
                lent.bring_back().unwrap();
                cover(lent, "also ours");
            },
            back,
            "before",
        ),
        (
            // What took its place is not covered: it would be taken for the file itself.
            &|lent| {
                link(lent);
                fs::write(&lent.fresh, "ours").unwrap();
                fs::rename(&lent.fresh, &lent.path).unwrap();
                assert_eq!(try_cover(lent, "also ours").unwrap_err().kind(), ErrorKind::InvalidInput);
            },
            back,
            "before",
        ),
        (
            &|lent| {
                link_and_cover(lent);
                lent.uncover().unwrap();
            },
            back,
            "before",
        ),
        (
            &|lent| {
                link_and_cover(lent);
                fs::write(&lent.path, "ours, and more").unwrap();
            },
            Some(others),
            "ours, and more",
        ),
    ];
    for (step, said, stays) in checks {
        check(step, said, stays);
    }
}

#[test]
fn what_took_the_place_of_a_file_is_told_from_what_lies_over_it() {
    let Some(Coverable { dir: _dir, lent, _alone }) = Coverable::new(true) else { return };
    assert!(!lent.is_replaced(), "nothing was put there");
    cover(&lent, "ours");
    assert!(!lent.is_replaced(), "it lies over the file");
    lent.uncover().unwrap();
    assert!(lent.is_replaced());
    lent.bring_back().unwrap();
    assert!(!lent.is_replaced(), "the file itself is back");
}

#[test]
fn what_was_written_into_what_a_boot_took_off_is_kept() {
    let Some(Coverable { dir, lent, _alone }) = Coverable::new(true) else { return };
    cover(&lent, "ours");
    fs::write(&lent.path, "ours, and more").unwrap();
    assert!(lent.take_off().unwrap());
    let (name, edited) = (lent.path.display(), dir.path().join("php.ini.edited-webdyno"));
    let foreseen = format!("would keep beside {name} what somebody else wrote to it meanwhile");
    let said = format!("what somebody else wrote to {name} meanwhile is in {}", edited.display());
    assert_eq!(foresee(&lent), Some(foreseen));
    assert_eq!(give_back(&lent, &head()), Ok(Some(said)));
    assert_eq!([&lent.path, &edited].map(|path| fs::read_to_string(path).unwrap()), ["before", "ours, and more"]);
    assert_eq!(give_back(&lent, &head()), Ok(None));
}

#[test]
fn what_lies_over_no_file_goes_again() {
    let Some(Coverable { dir, lent, _alone }) = Coverable::new(false) else { return };
    let deleted = Some(format!("deleted the file {}", lent.path.display()));
    for after_a_boot in [false, true] {
        cover(&lent, "ours");
        lent.uncover().unwrap();
        lent.bring_back().unwrap();
        cover(&lent, "ours");
        if after_a_boot {
            assert!(lent.take_off().unwrap());
            assert_eq!(fs::read_to_string(&lent.path).unwrap(), "");
        }
        assert_eq!(give_back(&lent, &head()).unwrap(), deleted);
        assert_eq!((give_back(&lent, &head()).unwrap(), fs::read_dir(dir.path()).unwrap().count()), (None, 0));
    }
    cover(&lent, "ours");
    fs::write(&lent.path, "theirs").unwrap();
    assert!(give_back(&lent, &head()).unwrap().unwrap().ends_with("was changed by somebody else and stays"));
    assert_eq!(fs::read_to_string(&lent.path).unwrap(), "theirs");
}

/// A process with mounts of its own, as they are when it begins, until it is dropped.
struct Apart(std::process::Child);

impl Apart {
    fn new() -> Apart {
        use std::process::{Command, Stdio};
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "sh", "-c", "echo; read line"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut [0]).unwrap();
        Apart(child)
    }

    fn reads(&self, path: &Path) -> String {
        fs::read_to_string(format!("/proc/{}/root{}", self.0.id(), path.display())).unwrap()
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        self.0.wait().unwrap();
    }
}

#[test]
fn nothing_is_laid_over_what_others_would_still_find() {
    let Some(Coverable { dir, lent, _alone }) = Coverable::new(true) else { return };
    let refused = || {
        assert_eq!(try_cover(&lent, "ours").unwrap_err().kind(), ErrorKind::Unsupported);
        assert_eq!(fs::read_to_string(&lent.path).unwrap(), "before");
        assert!(!lent.take_off().unwrap(), "nothing lies there");
    };
    let apart = Apart::new();
    refused();
    drop(apart);
    // Its folder at a second place.
    let second = tempfile::tempdir().unwrap();
    rustix::mount::mount_bind(dir.path(), second.path()).unwrap();
    rustix::mount::mount_change(second.path(), MountPropagationFlags::PRIVATE).unwrap();
    refused();
    rustix::mount::unmount(second.path(), UnmountFlags::DETACH).unwrap();
    cover(&lent, "ours");
    assert_eq!(give_back(&lent, &head()).unwrap(), Some(format!("gave back the file {}", lent.path.display())));
}

#[test]
fn who_got_mounts_of_his_own_meanwhile_finds_the_file_again() {
    for existed in [true, false] {
        let Some(coverable) = Coverable::new(existed) else { return };
        let lent = &coverable.lent;
        // Between two trials, and at the end.
        for at_the_end in [false, true] {
            cover(lent, "ours");
            let apart = Apart::new();
            assert_eq!(apart.reads(&lent.path), "ours");
            if at_the_end {
                give_back(lent, &head()).unwrap();
            } else {
                lent.uncover().unwrap();
                lent.bring_back().unwrap();
            }
            if existed {
                assert_eq!(apart.reads(&lent.path), "before");
            }
            assert_eq!(lent.path.exists(), existed);
        }
    }
}

/// Of what bytes names are made is nobody's business.
#[test]
fn a_folder_whose_name_is_no_text_is_no_hindrance() {
    let Some(coverable) = Coverable::new(false) else { return };
    let folder = coverable.dir.path().join(std::ffi::OsStr::from_bytes(b"caf\xe9"));
    fs::create_dir(&folder).unwrap();
    let lent = lent(&folder, true, Some(&["ours"]));
    fs::write(&lent.path, "before").unwrap();
    link(&lent);
    cover(&lent, "ours");
    assert!(give_back(&lent, &head()).unwrap().unwrap().starts_with("gave back the file "));
    assert_eq!(fs::read_to_string(&lent.path).unwrap(), "before");
}

#[test]
fn what_others_have_laid_there_stays() {
    let Some(Coverable { dir, lent, _alone }) = Coverable::new(true) else { return };
    // As where it could not be linked.
    fs::remove_file(lent.kept.as_ref().unwrap()).unwrap();
    let theirs = dir.path().join("theirs");
    fs::write(&theirs, "theirs").unwrap();
    rustix::mount::mount_bind(&theirs, &lent.path).unwrap();
    fs::remove_file(&theirs).unwrap();
    assert!(fs::hard_link(&lent.path, lent.kept.as_ref().unwrap()).is_err(), "no link leads out of a mount");
    assert_eq!(give_back(&lent, &head()).unwrap(), None);
    assert_eq!(fs::read_to_string(&lent.path).unwrap(), "theirs");
    rustix::mount::unmount(&lent.path, UnmountFlags::DETACH).unwrap();
}

#[test]
fn the_same_written_anew_is_nobodys_change() {
    let dir = tempfile::tempdir().unwrap();
    let lent = lent(dir.path(), true, Some(&["ours"]));
    let kept = lent.kept.clone().unwrap();
    fs::write(&kept, "before").unwrap();
    fs::write(&lent.path, "before").unwrap();
    assert_eq!(give_back(&lent, &head()), Ok(None));
    assert!(!kept.exists() && fs::read_to_string(&lent.path).unwrap() == "before");
}

#[test]
fn a_file_in_a_folder_of_somebody_elses_is_given_back() {
    if !rustix::process::geteuid().is_root() {
        return testkit::skip::not_here("no root");
    }
    let dir = tempfile::tempdir().unwrap();
    let lent = lent(dir.path(), true, Some(&["ours"]));
    let kept = lent.kept.clone().unwrap();
    for (path, text) in [(&kept, "before"), (&lent.path, "ours")] {
        fs::write(path, text).unwrap();
        std::os::unix::fs::chown(path, Some(65_534), Some(65_534)).unwrap();
    }
    // Everybody may write to it, and only root may list it or set its time.
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o733)).unwrap();
    let given_back = std::thread::scope(|scope| {
        let as_nobody = || {
            let nobody = rustix::process::Uid::from_raw(65_534);
            rustix::thread::set_thread_res_uid(nobody, nobody, nobody).unwrap();
            give_back(&lent, &head())
        };
        scope.spawn(as_nobody).join().unwrap()
    });
    assert_eq!(given_back, Ok(Some(format!("gave back the file {}", lent.path.display()))));
    assert_eq!(fs::read_to_string(&lent.path).unwrap(), "before");
}

#[test]
fn a_file_that_was_not_there_goes_again() {
    let dir = tempfile::tempdir().unwrap();
    let dropped = lent(dir.path(), false, None);
    assert_eq!(give_back(&dropped, &head()).unwrap(), None);
    fs::write(&dropped.path, "whatever").unwrap();
    assert!(give_back(&dropped, &head()).unwrap().unwrap().starts_with("deleted the file "));
    let other = Lent { path: dir.path().join("precious"), ..dropped };
    fs::write(&other.path, "").unwrap();
    assert!(give_back(&other, &head()).unwrap_err().contains("does not bear the name"));
    let new = lent(dir.path(), false, Some(&["ours"]));
    fs::write(&new.path, "not ours").unwrap();
    assert!(give_back(&new, &head()).unwrap().unwrap().ends_with("was changed by somebody else and stays"));
    fs::write(&new.path, "ours").unwrap();
    assert!(give_back(&new, &head()).unwrap().unwrap().starts_with("deleted the file "));
}
