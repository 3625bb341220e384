//! Frames over the control socket: length, nonce, postcard.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Bytes before the payload: `u32` payload length, `u64` nonce, little-endian.
pub(super) const HEADER: usize = 12;
/// The longest payload that is believed.
pub(super) const MAX_PAYLOAD: usize = 1 << 30;

/// A frame ready to be written in one call.
pub(super) fn encode<T: Serialize>(nonce: u64, message: &T) -> io::Result<Vec<u8>> {
    let mut frame = vec![0; HEADER];
    frame[4..].copy_from_slice(&nonce.to_le_bytes());
    let mut frame = postcard::to_extend(message, frame).map_err(io::Error::other)?;
    let length = frame.len() - HEADER;
    if length > MAX_PAYLOAD {
        return Err(io::Error::other(format!("message of {length} bytes")));
    }
    frame[..4].copy_from_slice(&(length as u32).to_le_bytes());
    Ok(frame)
}

/// Writes one message.
pub(super) fn send<T: Serialize>(mut to: &UnixStream, nonce: u64, message: &T) -> io::Result<()> {
    to.write_all(&encode(nonce, message)?)
}

/// Reads one message, waiting for all of it. `None` at the end of the stream.
pub(super) fn receive<T: DeserializeOwned>(
    mut from: &UnixStream,
    nonce: u64,
) -> io::Result<Option<T>> {
    let mut header = [0; HEADER];
    match from.read_exact(&mut header) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        other => other?,
    }
    let length = payload_length(&header, nonce).map_err(io::Error::other)?;
    let mut payload = vec![0; length];
    from.read_exact(&mut payload)?;
    let message = postcard::from_bytes(&payload).map_err(io::Error::other)?;
    Ok(Some(message))
}

/// Collects bytes and cuts them into messages.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    bytes: Vec<u8>,
    read: usize,
}

impl Inbox {
    /// Reads what there is without waiting. `Ok(0)` at the end of the stream.
    pub fn fill(&mut self, from: &UnixStream) -> io::Result<usize> {
        const STEP: usize = 64 << 10;
        self.bytes.drain(..self.read);
        self.read = 0;
        let held = self.bytes.len();
        self.bytes.resize(held + STEP, 0);
        let received = rustix::net::recv(from, &mut self.bytes[held..], RecvFlags::DONTWAIT);
        let count = received.as_ref().map_or(0, |(count, _)| *count);
        self.bytes.truncate(held + count);
        Ok(received.map(|_| count)?)
    }

    /// The next whole message, if there is one. The error says what is wrong with the stream.
    pub fn next<T: DeserializeOwned>(&mut self, nonce: u64) -> Result<Option<T>, String> {
        let pending = &self.bytes[self.read..];
        let Some(header) = pending.first_chunk::<HEADER>() else {
            return Ok(None);
        };
        let length = payload_length(header, nonce)?;
        let Some(payload) = pending[HEADER..].get(..length) else {
            return Ok(None);
        };
        let message = postcard::from_bytes(payload).map_err(|error| error.to_string())?;
        self.read += HEADER + length;
        Ok(Some(message))
    }
}

fn payload_length(header: &[u8; HEADER], nonce: u64) -> Result<usize, String> {
    let [l0, l1, l2, l3, stamp @ ..] = *header;
    if u64::from_le_bytes(stamp) != nonce {
        return Err("a frame with a wrong nonce".to_owned());
    }
    let length = u32::from_le_bytes([l0, l1, l2, l3]) as usize;
    if length > MAX_PAYLOAD {
        return Err(format!("a frame of {length} bytes"));
    }
    Ok(length)
}

/// Passes a descriptor, behind everything that was sent before.
pub(super) fn send_descriptor(to: &UnixStream, descriptor: BorrowedFd<'_>) -> io::Result<()> {
    let descriptors = [descriptor];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(&descriptors));
    let byte = [IoSlice::new(b"A")];
    rustix::net::sendmsg(to, &byte, &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Receives what [`send_descriptor`] passed.
pub(super) fn receive_descriptor(from: &UnixStream) -> io::Result<OwnedFd> {
    let mut byte = [0];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut into = [IoSliceMut::new(&mut byte)];
    rustix::net::recvmsg(from, &mut into, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let mut descriptors = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
        _ => None,
    });
    descriptors
        .next()
        .ok_or_else(|| io::Error::other("no descriptor came with the setup"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_arrive_whole_and_in_order() {
        let (a, b) = UnixStream::pair().unwrap();
        let mut inbox = Inbox::default();
        let frame = encode(7, &"first".to_owned()).unwrap();
        (&a).write_all(&frame[..HEADER + 2]).unwrap();
        inbox.fill(&b).unwrap();
        assert_eq!(inbox.next::<String>(7), Ok(None));
        (&a).write_all(&frame[HEADER + 2..]).unwrap();
        send(&a, 7, &"second".to_owned()).unwrap();
        inbox.fill(&b).unwrap();
        assert_eq!(inbox.next::<String>(7), Ok(Some("first".to_owned())));
        assert_eq!(inbox.next::<String>(7), Ok(Some("second".to_owned())));
        drop(a);
        assert_eq!(inbox.fill(&b).unwrap(), 0);
    }

    #[test]
    fn a_wrong_nonce_or_length_is_noticed() {
        let (a, b) = UnixStream::pair().unwrap();
        let mut inbox = Inbox::default();
        send(&a, 8, &1u8).unwrap();
        inbox.fill(&b).unwrap();
        assert!(inbox.next::<u8>(7).unwrap_err().contains("nonce"));
        let mut header = [0xFF; HEADER];
        header[4..].copy_from_slice(&7u64.to_le_bytes());
        assert!(payload_length(&header, 7).is_err());
    }

    #[test]
    fn descriptors_travel() {
        let (a, b) = UnixStream::pair().unwrap();
        let (read, mut write) = std::io::pipe().unwrap();
        send(&a, 1, &1u8).unwrap();
        send_descriptor(&a, std::os::fd::AsFd::as_fd(&read)).unwrap();
        assert_eq!(receive::<u8>(&b, 1).unwrap(), Some(1));
        let copy = receive_descriptor(&b).unwrap();
        write.write_all(b"x").unwrap();
        let mut byte = [0];
        std::fs::File::from(copy).read_exact(&mut byte).unwrap();
        assert_eq!(&byte, b"x");
    }
}
