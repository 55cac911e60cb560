//! `namespace` of a `[host.NAME]`: the settings of a network namespace on this machine.

use std::collections::BTreeMap;

use crate::scenario::section::{Read, Section};

pub(super) fn sysctl(host: &Section<'_>) -> Read<BTreeMap<String, String>> {
    let Some(table) = host.table("namespace")? else {
        return Err(host.missing(
            "namespace",
            "expected {} for a network namespace, or `ssh`, `slurm` or `local` for a machine",
        ));
    };
    let section = Section::open(host.source, table.value, table.span.clone(), &["sysctl"])?;
    let settings = section.texts_by_name("sysctl")?;
    for (name, value) in &settings {
        let is_part = |part: &str| {
            let letter = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
            !part.is_empty() && part.bytes().all(letter)
        };
        let is_name = name.starts_with("net.") && name.split('.').all(is_part);
        if !is_name || value.contains('\n') {
            return Err(host.source.mistake(
                table.span,
                format!("`{name}` is not a setting of a network namespace: expected a name below `net.`, such as \"net.ipv4.tcp_rmem\", with a value of one line"),
            ));
        }
    }
    Ok(settings)
}
