//! What dstat's users type, and what it comes to.

use super::*;

fn parsed(typed: &str) -> Result<WatchFlags, Refusal> {
    let words: Vec<String> = typed.split_whitespace().map(str::to_owned).collect();
    parse(Name::Dstat, &words)
}

fn check(typed: &str, expected: &WatchFlags) {
    assert_eq!(parsed(typed).as_ref(), Ok(expected), "{typed}");
}

fn flags(modules: &[Module]) -> WatchFlags {
    WatchFlags { modules: modules.to_vec(), ..WatchFlags::none() }
}

#[test]
fn modules_come_in_the_order_given() {
    use Module::*;
    check("-cmsdlnr", &flags(&[Cpu, Mem, Swap, Disk, Load, Net, Io]));
    check("-r --tcp -c --vm --filesystem -t", &flags(&[Io, Tcp, Cpu, Vm, Fs, Time]));
    check(
        "--tree apache --listen -L 80,443 --cgroup=web --cgroup db --cgroup web",
        &WatchFlags {
            tree: Some("apache".to_owned()),
            groups: vec!["web".to_owned(), "db".to_owned()],
            devices: Devices { ports: Some(vec!["80".to_owned(), "443".to_owned()]), ..Devices::default() },
            ..flags(&[Tree, Listen, Cgroup])
        },
    );
    check("-v", &flags(&[Proc, Mem, Page, Disk, Sys, Cpu]));
    check("-ya", &flags(&[Sys, Cpu, Disk, Net, Page, Sys]));
    check("--cpu --lock --ipc --raw --udp --unix --socket", &flags(&[Cpu, Lock, Ipc, Raw, Udp, Unix, Socket]));
}

#[test]
fn no_module_is_the_usual_ones_and_a_word_about_it() {
    use Module::*;
    let said = "You did not select any stats, using -cdngy by default.\n";
    check("5", &WatchFlags { said, unasked: true, delay: 5, ..flags(&[Cpu, Disk, Net, Page, Sys]) });
    let said = "Using default plugins: cpu, disk, net, load\n";
    let layout = Some(Layout::Modules(Compat::Dool));
    check("--compat dool", &WatchFlags { said, unasked: true, layout, ..flags(&[Cpu, Disk, Net, Load, Time]) });
    check("-a --compat=dool", &WatchFlags { layout, ..flags(&[Cpu, Disk, Net, Page, Mem, Sys, Proc, Load]) });
    check("--compat vmstat", &WatchFlags { layout: Some(Layout::Vmstat), ..flags(&[]) });
}

#[test]
fn words_are_options_or_times() {
    let check = |typed: &str, options: usize| {
        let words: Vec<String> = typed.split_whitespace().map(str::to_owned).collect();
        assert_eq!(split(&words), words.split_at(options), "{typed}");
    };
    check("-c 2 10", 1);
    check("-L 80,443 --listen", 3);
    check("-cmg --tree apache --cgroup=web --cgroup db -l 10", 7);
}

#[test]
fn delay_and_count() {
    let base = || flags(&[Module::Cpu]);
    check("-c 2 10", &WatchFlags { delay: 2, count: Some(10), ..base() });
    check("-c 2 -1", &WatchFlags { delay: 2, ..base() });
    check("-c 1 0", &WatchFlags { count: Some(0), ..base() });
}

#[test]
fn devices_and_looks() {
    let list = |names: &[&str]| Some(names.iter().map(|&name| name.to_owned()).collect());
    let devices = Devices { cpus: list(&["0", "3", "total"]), interfaces: list(&["lo"]), ..Devices::default() };
    check("-c -C 0,3,total -Nlo", &WatchFlags { devices, ..flags(&[Module::Cpu]) });
    let expected = WatchFlags {
        full: true,
        bits: Some(true),
        force: Some(Force::Decimal),
        colour: Some(false),
        headers: false,
        updates: Some(false),
        output: Some("a.csv".to_owned()),
        ..flags(&[Module::Disk])
    };
    check("-df --bits --float --nocolor --noheaders --noupdate --output a.csv", &expected);
}

#[test]
fn words_that_make_no_sense_are_named_by_us() {
    let check = |typed: &str, word: &str| {
        let words: Vec<String> = typed.split_whitespace().map(str::to_owned).collect();
        let expected = format!(
            "`{word}` is neither a delay in whole seconds nor a count; options come first, then [delay [count]]"
        );
        assert_eq!(parse(Name::Webdyno, &words), Err(Refusal::Mistake(expected)), "{typed}");
    };
    check("-c x", "x");
    check("-c 1.5", "1.5");
    check("-c 1 2 3", "3");
    check("-c 1 99999999999", "99999999999");
}

#[test]
fn refusals_are_those_of_dstat() {
    let check = |typed: &str, expected: &str| {
        assert_eq!(parsed(typed), Err(Refusal::Mistake(expected.to_owned())), "{typed}");
    };
    check("-x", "option -x not recognized, try dstat -h for a list of all the options");
    check("--top-hat", "option --top-hat not recognized, try dstat -h for a list of all the options");
    check("-c -D", "option -D requires argument, try dstat -h for a list of all the options");
    check("--float --integer", "option --float and --integer are mutual exclusive, you can only force one");
    check("-c x", "incorrect argument, try dstat -h for the correct syntax");
    check("-c 1.5", "incorrect argument, try dstat -h for the correct syntax");
    check("-c 1 2 3", "incorrect argument, try dstat -h for the correct syntax");
    check("-c 99999999999", "incorrect argument, try dstat -h for the correct syntax");
    check("-c 0", "delay must be an integer, greater than zero");
    check("--compat sar", "--compat takes dstat-0.7.2, dstat-0.8, dool or vmstat, not \"sar\"");
    check("--tree a --tree b", "option --tree can be given once");
    check("--tree", "option --tree requires argument, try dstat -h for a list of all the options");
    check("--compat vmstat -c", "--compat vmstat goes with no modules and no --output");
    check("--compat vmstat --output a", "--compat vmstat goes with no modules and no --output");
    assert_eq!(parsed("-h"), Err(Refusal::Help));
    assert_eq!(parsed("--list -x"), Err(Refusal::Mistake(not_recognized("-x"))));
    assert_eq!(parsed("--list"), Err(Refusal::List));
    assert_eq!(parsed("--vers"), Err(Refusal::Version));
}

fn not_recognized(option: &str) -> String {
    format!("option {option} not recognized, try dstat -h for a list of all the options")
}

#[test]
fn each_name_has_a_screen_of_its_own() {
    let flags = parse(Name::Webdyno, &["5".to_owned()]).unwrap();
    assert_eq!((flags.modules, flags.said, flags.delay), (OURS.to_vec(), "", 5));
}
