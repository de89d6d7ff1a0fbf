//! Trust: the system's certificates, and those of a file.

use std::path::Path;
use std::sync::Arc;

use rustls::ClientConfig;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls_platform_verifier::Verifier;

/// A configuration of its own for each engine: nothing here touches the process's default cryptography.
///
/// Errors: why the certificates cannot be had.
pub(crate) fn config(ca_file: Option<&Path>) -> Result<ClientConfig, String> {
    let extra = match ca_file {
        Some(path) => certificates(path)?,
        None => Vec::new(),
    };
    let cryptography = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = Verifier::new_with_extra_roots(extra, cryptography.clone())
        .map_err(|error| format!("cannot read the system's certificates: {error}; name a file of them (ca_file)"))?;
    let mut config = ClientConfig::builder_with_provider(cryptography)
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("cannot set up TLS: {error}"))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let unreadable = |error: &dyn std::fmt::Display| format!("cannot read certificates of {}: {error}", path.display());
    let found: Result<Vec<_>, _> = CertificateDer::pem_file_iter(path).map_err(|error| unreadable(&error))?.collect();
    let found = found.map_err(|error| unreadable(&error))?;
    if found.is_empty() { Err(unreadable(&"it holds none")) } else { Ok(found) }
}
