//! What can be typed after `webdyno watch`, or to webdyno under the name of `dstat`: dstat's options, read by its rules.
//!
//! [`parse`] reads and refuses as dstat does; it opens nothing and knows no device. What differs from dstat, and why, stands in
//! `docs/compatibility/dstat.md`.

pub(crate) mod extras;
mod getopt;

use getopt::{Opt, getopt};
use report::watch::{Compat, Force, Module};

/// What was typed, and makes sense.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WatchFlags {
    /// Whose screen to draw; `None` when nobody said so.
    pub(crate) layout: Option<Layout>,
    /// Modules in the order given, those of `-a` and `-v` among them.
    pub(crate) modules: Vec<Module>,
    /// Nobody asked for these modules: one that has nothing to show is left out without a word.
    pub(crate) unasked: bool,
    /// What dstat says before it starts.
    pub(crate) said: &'static str,
    /// Devices by name (`-C`, `-D`, `-I`, `-L`, `-N`, `-S`).
    pub(crate) devices: Devices,
    /// What `--cgroup` is about, which can be given several times.
    pub(crate) groups: Vec<String>,
    /// What `--tree` is about.
    pub(crate) tree: Option<String>,
    /// All devices where none are named (`-f`).
    pub(crate) full: bool,
    /// Traffic in bits (`--bits`, `--bytes`); each version has a default of its own.
    pub(crate) bits: Option<bool>,
    /// `--integer`, `--float`.
    pub(crate) force: Option<Force>,
    /// `--color`, `--nocolor`.
    pub(crate) colour: Option<bool>,
    /// No more than sixteen colours (`--color16`).
    pub(crate) few_colours: bool,
    /// For a white background (`--bw`).
    pub(crate) white_background: bool,
    /// Frames of ASCII where dool has others (`--ascii`).
    pub(crate) ascii: bool,
    /// Repeat the headings; not with `--noheaders`.
    pub(crate) headers: bool,
    /// Draw a row anew each second until its delay has passed (`--color`, and not with `--noupdate`); terminals alone have that by
    /// themselves.
    pub(crate) updates: Option<bool>,
    /// The CSV file (`-o`, `--output`).
    pub(crate) output: Option<String>,
    /// Seconds from row to row.
    pub(crate) delay: u32,
    /// Rows; without end if `None`.
    pub(crate) count: Option<u32>,
}

/// Whose screen to draw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// dstat's modules.
    Modules(Compat),
    /// vmstat's one set of columns.
    Vmstat,
}

/// Lists of devices as typed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Devices {
    pub(crate) cpus: Option<Vec<String>>,
    pub(crate) disks: Option<Vec<String>>,
    pub(crate) interrupts: Option<Vec<String>>,
    pub(crate) interfaces: Option<Vec<String>>,
    pub(crate) ports: Option<Vec<String>>,
    pub(crate) swaps: Option<Vec<String>>,
}

/// Why nothing is watched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// `-h`.
    Help,
    /// `-V`.
    Version,
    /// `--list`.
    List,
    /// A mistake, in dstat's words: it prints this line on standard output, behind its name, and ends with 1.
    Mistake(String),
}

/// What the program was called: each has modules of its own when none are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Name {
    /// `webdyno watch`.
    Webdyno,
    /// `dstat`.
    Dstat,
}

const SHORTS: &str = "acdfghilmno:prstTvyC:D:I:L:N:S:V";

/// Long options that are no modules.
const LONGS: [&str; 22] = [
    "all",
    "ascii",
    "bits",
    "black-on-white",
    "bw",
    "bytes",
    "color",
    "color16",
    "compat=",
    "display",
    "filesystem",
    "float",
    "full",
    "help",
    "integer",
    "list",
    "nocolor",
    "noheaders",
    "noupdate",
    "output=",
    "version",
    "vmstat",
];

/// What `webdyno watch` shows of itself: for whoever runs a web server, the most telling first, because a narrow terminal has room
/// for those alone.
const OURS: [Module; 9] = [
    Module::Cpu,
    Module::Psi,
    Module::Page,
    Module::Net,
    Module::Listen,
    Module::Mem,
    Module::TcpTrouble,
    Module::DiskQueue,
    Module::Load,
];

/// A module, or a set of them that depends on the version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    One(Module),
    All,
    Vmstat,
}

/// Reads the words behind the program's name.
pub(crate) fn parse(name: Name, words: &[String]) -> Result<WatchFlags, Refusal> {
    let modules: Vec<String> = Module::all().map(long).collect();
    let longs: Vec<&str> = LONGS.into_iter().chain(modules.iter().map(String::as_str)).collect();
    let (options, left) = getopt(words, SHORTS, &longs)
        .map_err(|error| mistake(&format!("{error}, try dstat -h for a list of all the options")))?;
    let mut flags = WatchFlags::none();
    let (mut asked, mut forced) = (Vec::new(), [false; 2]);
    for option in options {
        flags.take(&option, &mut asked, &mut forced)?;
    }
    flags.force = match forced {
        [true, true] => {
            return Err(mistake("option --float and --integer are mutual exclusive, you can only force one"));
        }
        [true, false] => Some(Force::Decimal),
        [false, true] => Some(Force::Whole),
        [false, false] => None,
    };
    flags.choose(name, &asked)?;
    flags.times(name, left)?;
    Ok(flags)
}

/// Splits words that [`parse`] takes into options and what follows them: delay and count.
pub(crate) fn split(words: &[String]) -> (&[String], &[String]) {
    let modules: Vec<String> = Module::all().map(long).collect();
    let longs: Vec<&str> = LONGS.into_iter().chain(modules.iter().map(String::as_str)).collect();
    let left = getopt(words, SHORTS, &longs).map_or(0, |(_, left)| left.len());
    words.split_at(words.len() - left)
}

impl WatchFlags {
    fn none() -> Self {
        WatchFlags {
            layout: None,
            modules: Vec::new(),
            unasked: false,
            said: "",
            devices: Devices::default(),
            groups: Vec::new(),
            tree: None,
            full: false,
            bits: None,
            force: None,
            colour: None,
            few_colours: false,
            white_background: false,
            ascii: false,
            headers: true,
            updates: None,
            output: None,
            delay: 1,
            count: None,
        }
    }

    fn take(&mut self, option: &Opt<'_>, asked: &mut Vec<Asked>, forced: &mut [bool; 2]) -> Result<(), Refusal> {
        let list = || Some(option.value.split(',').map(str::to_owned).collect());
        match option.name {
            "a" | "all" => asked.push(Asked::All),
            "v" | "vmstat" => asked.push(Asked::Vmstat),
            "C" => self.devices.cpus = list(),
            "D" => self.devices.disks = list(),
            "I" => self.devices.interrupts = list(),
            "L" => self.devices.ports = list(),
            "N" => self.devices.interfaces = list(),
            "S" => self.devices.swaps = list(),
            "f" | "full" => self.full = true,
            "bits" => self.bits = Some(true),
            "bytes" => self.bits = Some(false),
            "bw" | "black-on-white" => self.white_background = true,
            "ascii" => self.ascii = true,
            "color" => (self.colour, self.updates) = (Some(true), Some(true)),
            "color16" => (self.colour, self.few_colours, self.updates) = (Some(true), true, Some(true)),
            // dool shows nothing beside its file without it; we always do.
            "display" => {}
            "nocolor" => self.colour = Some(false),
            "float" => forced[0] = true,
            "integer" => forced[1] = true,
            "noheaders" => self.headers = false,
            "noupdate" => self.updates = Some(false),
            "o" | "output" => self.output = Some(option.value.to_owned()),
            "compat" => self.layout = Some(layout(option.value)?),
            "list" => return Err(Refusal::List),
            "h" | "help" => return Err(Refusal::Help),
            "V" | "version" => return Err(Refusal::Version),
            "cgroup" => {
                // All of them stand together, where the first one was named.
                if self.groups.is_empty() {
                    asked.push(Asked::One(Module::Cgroup));
                }
                if !self.groups.iter().any(|group| group == option.value) {
                    self.groups.push(option.value.to_owned());
                }
            }
            "tree" => {
                if self.tree.replace(option.value.to_owned()).is_some() {
                    return Err(mistake("option --tree can be given once"));
                }
                asked.push(Asked::One(Module::Tree));
            }
            name => asked.extend(module(name).map(Asked::One)),
        }
        Ok(())
    }

    /// Which modules the version means.
    fn choose(&mut self, name: Name, asked: &[Asked]) -> Result<(), Refusal> {
        use Module::{Cpu, Disk, Load, Mem, Net, Page, Proc, Sys, Time};
        let dool = self.layout == Some(Layout::Modules(Compat::Dool));
        let set = |asked: &Asked| match asked {
            Asked::One(module) => vec![*module],
            Asked::All if dool => vec![Cpu, Disk, Net, Page, Mem, Sys, Proc, Load],
            Asked::All => vec![Cpu, Disk, Net, Page, Sys],
            Asked::Vmstat => vec![Proc, Mem, Page, Disk, Sys, Cpu],
        };
        self.modules = asked.iter().flat_map(set).collect();
        if self.layout == Some(Layout::Vmstat) {
            let apart = self.modules.is_empty() && self.output.is_none();
            return apart.then_some(()).ok_or_else(|| mistake("--compat vmstat goes with no modules and no --output"));
        }
        if self.modules.is_empty() {
            (self.modules, self.said) = match (dool, name) {
                (true, _) => (vec![Cpu, Disk, Net, Load, Time], "Using default plugins: cpu, disk, net, load\n"),
                (false, Name::Dstat) => (set(&Asked::All), "You did not select any stats, using -cdngy by default.\n"),
                (false, Name::Webdyno) => (OURS.to_vec(), ""),
            };
            self.unasked = true;
        }
        Ok(())
    }

    /// Delay and count.
    fn times(&mut self, name: Name, left: &[String]) -> Result<(), Refusal> {
        let incorrect = |word: &String| match name {
            Name::Dstat => mistake("incorrect argument, try dstat -h for the correct syntax"),
            Name::Webdyno => mistake(&format!(
                "`{word}` is neither a delay in whole seconds nor a count; options come first, then [delay [count]]"
            )),
        };
        let number = |word: &String| word.trim().parse::<i64>().map_err(|_| incorrect(word));
        // dstat takes no notice of what follows; an option there would be lost without a word.
        let (delay, count) = match left {
            [] => (1, -1),
            [delay] => (number(delay)?, -1),
            [delay, count] => (number(delay)?, number(count)?),
            [_, _, word, ..] => return Err(incorrect(word)),
        };
        if delay <= 0 {
            return Err(mistake("delay must be an integer, greater than zero"));
        }
        self.delay = u32::try_from(delay).map_err(|_| incorrect(&left[0]))?;
        self.count = match count {
            -1 => None,
            count => Some(u32::try_from(count.max(0)).map_err(|_| incorrect(&left[1]))?),
        };
        Ok(())
    }
}

/// The long option of a module; one that must be told what it is about takes a value.
fn long(module: Module) -> String {
    format!("{}{}", module.name(), if module.is_named() { "=" } else { "" })
}

/// The module of a short or long option.
fn module(name: &str) -> Option<Module> {
    Some(match name {
        "c" => Module::Cpu,
        "d" => Module::Disk,
        "g" => Module::Page,
        "i" => Module::Int,
        "l" => Module::Load,
        "m" => Module::Mem,
        "n" => Module::Net,
        "p" => Module::Proc,
        "r" => Module::Io,
        "s" => Module::Swap,
        "t" => Module::Time,
        "T" => Module::Epoch,
        "y" => Module::Sys,
        "filesystem" => Module::Fs,
        name => return Module::named(name),
    })
}

fn layout(name: &str) -> Result<Layout, Refusal> {
    Ok(match name {
        "dstat-0.7.2" => Layout::Modules(Compat::Dstat07),
        "dstat-0.8" => Layout::Modules(Compat::Dstat08),
        "dool" => Layout::Modules(Compat::Dool),
        "vmstat" => Layout::Vmstat,
        _ => return Err(mistake(&format!("--compat takes dstat-0.7.2, dstat-0.8, dool or vmstat, not {name:?}"))),
    })
}

fn mistake(what: &str) -> Refusal {
    Refusal::Mistake(what.to_owned())
}

#[cfg(test)]
mod tests;
