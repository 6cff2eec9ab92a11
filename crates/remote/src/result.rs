//! What came of a load, as it travels: all that JSON takes, and the histograms behind it as they are stored.

use model::latency::Latency;
use model::load::LoadResult;

/// The histograms of a result whose seconds have gone before, in the order that [`unpack`] reads.
pub(crate) fn pack(result: &LoadResult) -> Vec<Vec<u8>> {
    // Both ends walk over the same places; this one leaves them as they are.
    let mut copy = result.clone();
    places(&mut copy).into_iter().map(|latency| latency.encode()).collect()
}

/// Puts them back; the error is one for humans.
pub(crate) fn unpack(result: &mut LoadResult, blobs: &[Vec<u8>]) -> Result<(), String> {
    let places = places(result);
    if places.len() != blobs.len() {
        return Err(format!("{} histograms came where there are {}", blobs.len(), places.len()));
    }
    for (place, blob) in places.into_iter().zip(blobs) {
        *place = Latency::decode(blob).map_err(|error| error.to_string())?;
    }
    Ok(())
}

fn places(result: &mut LoadResult) -> Vec<&mut Latency> {
    let LoadResult { total, first_byte, connect, handshake, unanswered, open, sessions, .. } = result;
    let mut places = vec![total, first_byte, connect, handshake];
    places.extend([&mut unanswered.latency, &mut unanswered.first_byte, &mut unanswered.service]);
    places.extend(open.iter_mut().flat_map(|open| [&mut open.service, &mut open.lateness]));
    places.extend(sessions.iter_mut().flat_map(|s| [&mut s.page, &mut s.page_at_least, &mut s.lateness]));
    places
}
