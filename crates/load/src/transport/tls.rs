//! TLS over a socket, by rustls: sessions, what they are made of, and bytes in and out of them.

use super::Socket;
use super::tunnel::{Opening, Tunnel, TunnelError};
use crate::engine::LoadError;
use model::load::TlsFacts;
use model::plan::{TlsSpec, TlsVersion, Verify};
use rustix::io::Errno;
use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs as aws, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{AlgorithmIdentifier, CertificateDer, PrivateKeyDer, ServerName, UnixTime, alg_id};
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, ProtocolVersion, RootCertStore, SignatureScheme,
    SupportedCipherSuite, SupportedProtocolVersion,
};
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;

/// What all sessions of one worker have in common. Not shared among workers: the memory of past sessions is behind a lock.
pub(crate) struct TlsClient {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

/// A session and the socket below it.
pub(crate) struct TlsStream {
    socket: Socket,
    session: ClientConnection,
    // A tunnel that is not there yet; no byte of the session goes before it.
    opening: Option<Box<Opening>>,
    // Bytes of the record that was taken last.
    taken: usize,
    // Whether the connection was closed below the session, without the alert that says that this is the end.
    is_cut_off: bool,
    // Whether the server has said that nothing more comes.
    ended: bool,
}

/// What went wrong below HTTP.
#[derive(Debug)]
pub(crate) enum StreamError {
    /// The kernel said so.
    Kernel(Errno),
    /// The session cannot go on.
    Tls(rustls::Error),
    /// There is no way through the proxy.
    Tunnel(TunnelError),
}

impl StreamError {
    /// Whether it only has to be tried again when the kernel is ready.
    pub(crate) fn is_not_now(&self) -> bool {
        matches!(self, StreamError::Kernel(Errno::AGAIN))
    }
}

impl TlsClient {
    /// Reads certificates and keys.
    ///
    /// # Errors
    /// When a file cannot be read or is not what it should be, or the name is none.
    pub(crate) fn new(spec: &TlsSpec) -> Result<TlsClient, LoadError> {
        let provider = Arc::new(provider(&spec.suites)?);
        let versions: &[&SupportedProtocolVersion] = match spec.version {
            None => rustls::DEFAULT_VERSIONS,
            Some(TlsVersion::Tls12) => &[&rustls::version::TLS12],
            Some(TlsVersion::Tls13) => &[&rustls::version::TLS13],
        };
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(versions)
            .map_err(|error| bad(error.to_string()))?;
        let builder = match &spec.verify {
            Verify::System => builder.with_root_certificates(system_roots()?),
            Verify::File(path) => builder.with_root_certificates(roots(path)?),
            Verify::Nothing => builder.dangerous().with_custom_certificate_verifier(Arc::new(AcceptAll { provider })),
        };
        let mut config = match &spec.client {
            None => builder.with_no_client_auth(),
            Some(client) => {
                let key = PrivateKeyDer::from_pem_file(&client.key)
                    .map_err(|error| bad(format!("no private key in {}: {error}", client.key.display())))?;
                builder
                    .with_client_auth_cert(certificates(&client.certificate)?, key)
                    .map_err(|error| bad(format!("the client certificate does not go with its key: {error}")))?
            }
        };
        if !spec.resume {
            config.resumption = Resumption::disabled();
        }
        let name = ServerName::try_from(spec.server_name.clone())
            .map_err(|_| bad(format!("`{}` is not a server name", spec.server_name)))?;
        Ok(TlsClient { config: Arc::new(config), name })
    }

    /// A new session, its first message made and not sent.
    pub(super) fn session(&self) -> Result<ClientConnection, rustls::Error> {
        let mut session = ClientConnection::new(Arc::clone(&self.config), self.name.clone())?;
        // What may be written is bounded by the requests, so nothing is ever half accepted.
        session.set_buffer_limit(None);
        Ok(session)
    }
}

impl TlsStream {
    /// A session over a socket that is being connected, and perhaps through a tunnel.
    pub(super) fn new(socket: Socket, session: ClientConnection, tunnel: Option<&Tunnel>) -> TlsStream {
        TlsStream { socket, session, opening: tunnel.map(Tunnel::open), taken: 0, is_cut_off: false, ended: false }
    }

    /// Whether the way to the server is there; a proxy on it is no server.
    pub(super) fn is_connected(&self) -> bool {
        self.socket.has_sent && self.opening.is_none()
    }

    pub(super) fn socket(&self) -> &Socket {
        &self.socket
    }

    /// Takes as much as fits into one record, once the session is up and everything before it has left: what lies within the
    /// session can no longer be counted.
    pub(super) fn send(&mut self, bytes: &[u8]) -> Result<usize, StreamError> {
        if self.session.is_handshaking() || self.session.wants_write() {
            return Err(StreamError::Kernel(Errno::AGAIN));
        }
        let record = &bytes[..bytes.len().min(RECORD)];
        // Into memory without a limit: this cannot fail.
        let _ = self.session.writer().write_all(record);
        self.taken = 0;
        self.flush()?;
        self.taken = record.len();
        Ok(record.len())
    }

    /// Whether the end came without the alert that tells it from a cut: RFC 9112 section 9.8.
    pub(super) fn is_cut_off(&self) -> bool {
        self.is_cut_off
    }

    /// Bytes that were taken and may not have left.
    pub(super) fn held(&self) -> usize {
        if self.session.wants_write() { self.taken } else { 0 }
    }

    /// Sends what the kernel takes now of what was accepted.
    pub(super) fn flush(&mut self) -> Result<(), StreamError> {
        if let Some(opening) = &mut self.opening {
            if !opening.go_on(&mut self.socket)? {
                return Ok(());
            }
            self.opening = None;
        }
        while self.session.wants_write() {
            match self.session.write_tls(&mut self.socket) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(kernel(&error)),
            }
        }
        Ok(())
    }

    /// Gives what has arrived and makes sense; 0 bytes are the end.
    pub(super) fn receive(&mut self, buffer: &mut [u8]) -> Result<usize, StreamError> {
        if self.opening.is_some() {
            // What comes now is the proxy's, and flushing looks at it.
            return Err(StreamError::Kernel(Errno::AGAIN));
        }
        loop {
            match self.session.reader().read(buffer) {
                Ok(length) => return Ok(length),
                // For an answer that says its length that is an end as good as any.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    self.is_cut_off = true;
                    return Ok(0);
                }
                Err(_) => {}
            }
            match self.session.read_tls(&mut self.socket) {
                Ok(0) if self.session.is_handshaking() => return Ok(0),
                Ok(_) => {}
                Err(error) => return Err(kernel(&error)),
            }
            match self.session.process_new_packets() {
                Ok(state) => self.ended = state.peer_has_closed(),
                Err(error) => {
                    // The server should hear of it.
                    let _ = self.flush();
                    return Err(StreamError::Tls(error));
                }
            }
            self.flush()?;
        }
    }

    /// Whether the server has said that nothing more comes. What it sent before may still be there to be received; the kernel, whose
    /// part is done, tells of neither.
    pub(super) fn is_ended(&self) -> bool {
        self.ended
    }

    pub(super) fn is_blocked(&self) -> bool {
        self.opening.as_ref().map_or_else(|| self.session.wants_write(), |opening| opening.is_unsent())
    }

    pub(super) fn is_handshaking(&self) -> bool {
        self.session.is_handshaking()
    }

    /// What both sides agreed on, once they did.
    pub(super) fn facts(&self) -> Option<TlsFacts> {
        let version = match self.session.protocol_version()? {
            ProtocolVersion::TLSv1_2 => TlsVersion::Tls12,
            ProtocolVersion::TLSv1_3 => TlsVersion::Tls13,
            _ => return None,
        };
        let suite = format!("{:?}", self.session.negotiated_cipher_suite()?.suite());
        let group = self.session.negotiated_key_exchange_group().map(|group| format!("{:?}", group.name()));
        let key_bits = self.session.peer_certificates().and_then(|chain| key_bits(chain.first()?));
        Some(TlsFacts { version, suite, group, key_bits })
    }
}

/// Everything of the library's, with those suites alone if some are named.
fn provider(suites: &[String]) -> Result<CryptoProvider, LoadError> {
    let mut provider = aws::default_provider();
    if let Some(unknown) = suites.iter().find(|name| !provider.cipher_suites.iter().any(|suite| is_called(suite, name)))
    {
        return Err(bad(format!("`{unknown}` is no cipher suite that webdyno has")));
    }
    provider.cipher_suites.retain(|suite| suites.is_empty() || suites.iter().any(|name| is_called(suite, name)));
    Ok(provider)
}

fn is_called(suite: &SupportedCipherSuite, name: &str) -> bool {
    format!("{:?}", suite.suite()) == name
}

/// Bits of a certificate's key.
fn key_bits(certificate: &CertificateDer<'_>) -> Option<u32> {
    let key = webpki::EndEntityCert::try_from(certificate).ok()?.subject_public_key_info();
    let on_curve =
        |algorithm: &AlgorithmIdentifier| key.windows(algorithm.len()).any(|part| part == algorithm.as_ref());
    let curves = [(alg_id::ECDSA_P256, 256), (alg_id::ECDSA_P384, 384), (alg_id::ECDSA_P521, 521)];
    if let Some((_, bits)) = curves.iter().find(|(algorithm, _)| on_curve(algorithm)) {
        return Some(*bits);
    }
    let rsa = aws_lc_rs::rsa::PublicEncryptingKey::from_der(&key).ok()?;
    u32::try_from(rsa.key_size_bits()).ok()
}

/// The most that fits into a record: RFC 8446 section 5.1.
const RECORD: usize = 16 * 1024;

fn kernel(error: &io::Error) -> StreamError {
    StreamError::Kernel(Errno::from_io_error(error).unwrap_or(Errno::IO))
}

fn bad(what: String) -> LoadError {
    LoadError::Tls(what)
}

fn system_roots() -> Result<RootCertStore, LoadError> {
    let mut store = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    store.add_parsable_certificates(found.certs);
    if store.is_empty() {
        return Err(bad(
            "this machine has no certificate authorities; install ca-certificates or name a file".to_owned()
        ));
    }
    Ok(store)
}

/// Whether a load could believe the certificate authorities in that PEM file.
///
/// # Errors
/// When it could not.
pub fn check_authorities(path: &Path) -> Result<(), LoadError> {
    roots(path).map(drop)
}

fn roots(path: &Path) -> Result<RootCertStore, LoadError> {
    let mut store = RootCertStore::empty();
    store.add_parsable_certificates(certificates(path)?);
    if store.is_empty() {
        return Err(bad(format!("no certificate in {} can be used; it must be PEM", path.display())));
    }
    Ok(store)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, LoadError> {
    let unreadable =
        |error: rustls::pki_types::pem::Error| bad(format!("no certificates in {}: {error}", path.display()));
    CertificateDer::pem_file_iter(path).map_err(unreadable)?.collect::<Result<_, _>>().map_err(unreadable)
}

/// Takes any certificate: what `--insecure` asks for. Signatures are checked all the same, as part of the handshake's cost.
#[derive(Debug)]
struct AcceptAll {
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for AcceptAll {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
