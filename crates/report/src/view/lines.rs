//! What a variant sets, by the names of those who read it.

use model::plan::{Directive, Edit, Variant};

/// What is set together: a block of directives without its container, or with another one, would mean something else.
#[derive(PartialEq)]
struct Part<'a> {
    lines: Vec<String>,
    /// What becomes of a file; its path is the only line.
    edit: Option<&'a Edit>,
}

/// What a variant sets otherwise than another: of each part that is not the same in both, all lines.
pub(crate) fn otherwise(variant: &Variant, than: &Variant) -> Vec<String> {
    let known = parts(than);
    parts(variant).into_iter().filter(|part| !known.contains(part)).flat_map(|part| part.lines).collect()
}

fn parts(variant: &Variant) -> Vec<Part<'_>> {
    let Variant { directives, servers, php, changes, end, page_cache, .. } = variant;
    let of = |lines: Vec<String>| Part { lines, edit: None };
    let alone = |line: String| of(vec![line]);
    let server = servers.server.iter().map(|server| alone(format!("server = {server}")));
    let services = servers.services.iter().map(|services| alone(format!("services = {}", services.join(", "))));
    let own = of(texts(directives).map(str::to_owned).collect());
    let of_services = servers.changes.iter().map(|(name, change)| {
        let lines = texts(&change.directives).map(|text| format!("{name}: {text}"));
        of(lines.collect())
    });
    let php = php.ini.iter().chain(&php.pool).map(|(name, setting)| alone(format!("{name} = {}", setting.value)));
    let kernel = changes.sysctl.iter().map(|(name, setting)| alone(format!("{name} = {}", setting.value)));
    let files = changes.files.iter();
    let files = files.map(|file| Part { lines: vec![file.path.display().to_string()], edit: Some(&file.edit) });
    let end = end.iter().map(|end| alone(format!("ending = {}", end.how.name())));
    let page_cache = page_cache.iter().map(|page_cache| alone(format!("page_cache = {}", page_cache.name())));
    let of_machine = kernel.chain(files).chain(end).chain(page_cache);
    server.chain(services).chain([own]).chain(of_services).chain(php).chain(of_machine).collect()
}

fn texts(directives: &[Directive]) -> impl Iterator<Item = &str> {
    directives.iter().map(|directive| directive.text.trim()).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_variant_sets() {
        let text = "[server]\nkind = \"apache\"\nmpm = \"prefork\"\nphp = \"module\"\ndocument_root = \"/srv\"\n\
                    [variant.a]\ndirectives = \"StartServers 4\"\nini = { memory_limit = \"80M\", precision = 5 }\n\
                    [[variant.a.files]]\npath = \"/etc/a\"\ncontent = \"1\"\n\
                    [variant.b]\ndirectives = \"\"\"\nMaxRequestWorkers 4\n\nStartServers 4\n\"\"\"\n\
                    ini = { memory_limit = \"80M\" }\nsysctl = { \"net.core.somaxconn\" = \"64\" }\n\
                    [[variant.b.files]]\npath = \"/etc/a\"\ncontent = \"2\"\n\
                    [load.l]\npath = \"/\"\nconnections = 1\nrequests = 9\n";
        let plan =
            model::plan::parse(text, std::path::Path::new("t.toml"), &model::plan::Options::default()).unwrap().0;
        let [a, b] = plan.variants.as_slice() else { panic!("two") };
        assert_eq!(otherwise(b, a), ["MaxRequestWorkers 4", "StartServers 4", "net.core.somaxconn = 64", "/etc/a"]);
        assert_eq!(otherwise(a, b), ["StartServers 4", "precision = 5", "/etc/a"]);
        let cold = Variant { page_cache: Some(model::plan::PageCache::Cold), ..b.clone() };
        assert_eq!(otherwise(&cold, b), ["page_cache = cold"]);
        assert_eq!(otherwise(b, b), [""; 0]);
    }
}
