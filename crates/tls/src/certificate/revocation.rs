//! Files of certificate revocation lists (RFC 5280 5): PEM with any number of lists, or DER with one.

use std::cmp::Reverse;
use std::path::Path;

use onrush_engine::clock;
use rustls::pki_types::CertificateRevocationListDer;
use rustls::pki_types::pem::PemObject;
use x509_parser::prelude::FromDer;
use x509_parser::revocation_list::CertificateRevocationList;
use x509_parser::time::ASN1Time;

use crate::certificate::pem::{self, ExpectedContent};
use crate::limits::REVOCATION_LIST_BYTES_MAX;

/// Reads the lists in a file, at least one.
///
/// # Errors
/// When the file cannot be read or contains something else.
pub(crate) fn read(file: &Path) -> Result<Vec<CertificateRevocationListDer<'static>>, String> {
    let bytes = onrush_file::read(file, REVOCATION_LIST_BYTES_MAX)
        .map_err(|error| format!("it cannot be read: {error}"))?;
    if let Some(why) = pem::explain_byte_order_mark(&bytes) {
        return Err(why.into());
    }
    if pem::is_der(&bytes) {
        return match CertificateRevocationList::from_der(&bytes) {
            Ok(([], _)) => Ok(vec![bytes.into()]),
            Ok(_) => Err("bytes follow the revocation list".into()),
            Err(_) => Err("it is DER, but not a certificate revocation list".into()),
        };
    }
    let lists: Vec<_> = CertificateRevocationListDer::pem_slice_iter(&bytes)
        .collect::<Result<_, _>>()
        .map_err(|error| {
            pem::explain_content(
                &bytes,
                ExpectedContent::RevocationList,
                Some(&error.to_string()),
            )
        })?;
    match lists.is_empty() {
        true => Err(pem::explain_content(
            &bytes,
            ExpectedContent::RevocationList,
            None,
        )),
        false => Ok(lists),
    }
}

/// Sorts newer lists first, because rustls uses the first of several lists of one authority. The newest has the latest
/// `thisUpdate`, then the largest number (RFC 5280 5.2.3).
pub(crate) fn sort_newest_first(lists: &mut [CertificateRevocationListDer<'static>]) {
    lists.sort_by_cached_key(|list| {
        let parsed = CertificateRevocationList::from_der(list).ok();
        Reverse(
            parsed.map(|(_, list)| (list.last_update().timestamp(), list.crl_number().cloned())),
        )
    });
}

pub(crate) fn ends(lists: &[CertificateRevocationListDer<'static>]) -> Vec<u64> {
    let end = |list: &CertificateRevocationListDer<'_>| {
        let (_, list) = CertificateRevocationList::from_der(list).ok()?;
        u64::try_from(list.next_update()?.timestamp()).ok()
    };
    lists.iter().filter_map(end).collect()
}

/// Returns a warning for each expired list: all clients of its authority are refused until it is renewed.
pub(crate) fn expired(
    lists: &[CertificateRevocationListDer<'static>],
) -> impl Iterator<Item = String> {
    let now = ASN1Time::from_timestamp(clock::unix_seconds() as i64).ok();
    lists.iter().filter_map(move |list| {
        let (_, list) = CertificateRevocationList::from_der(list).ok()?;
        let end = list.next_update().filter(|end| Some(*end) < now)?;
        Some(format!(
            "the revocation list of {} has expired: {end}; its clients are refused",
            list.issuer()
        ))
    })
}
