//! The requests in flight, in the order they began: a doubly linked list threaded through one vector of all places there are.
//!
//! All requests of a load have the same timeout, so the oldest is always the next to expire: beginning, ending and finding it
//! take constant time, and no timer is set or cancelled per request.

/// Which places on a worker's connections have a request in flight, oldest first.
pub(crate) struct InFlight {
    // One per place, and behind them the list's own: it comes before the oldest and after the youngest.
    links: Vec<Link>,
}

#[derive(Clone, Copy)]
struct Link {
    older: usize,
    younger: usize,
}

impl InFlight {
    /// An empty list for so many places.
    pub(crate) fn new(places: usize) -> InFlight {
        // Whoever is linked to itself is not in the list.
        InFlight { links: (0..=places).map(|i| Link { older: i, younger: i }).collect() }
    }

    /// Adds a place as the youngest. It must not be in the list.
    pub(crate) fn push(&mut self, place: usize) {
        let end = self.end();
        let youngest = self.links[end].older;
        self.links[place] = Link { older: youngest, younger: end };
        self.links[youngest].younger = place;
        self.links[end].older = place;
    }

    /// Takes a place out, wherever it is.
    pub(crate) fn remove(&mut self, place: usize) {
        let Link { older, younger } = self.links[place];
        self.links[older].younger = younger;
        self.links[younger].older = older;
        self.links[place] = Link { older: place, younger: place };
    }

    /// The place whose request began first.
    pub(crate) fn oldest(&self) -> Option<usize> {
        let end = self.end();
        let oldest = self.links[end].younger;
        (oldest != end).then_some(oldest)
    }

    /// Whether nobody is in the list.
    pub(crate) fn is_empty(&self) -> bool {
        self.oldest().is_none()
    }

    fn end(&self) -> usize {
        self.links.len() - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pushes (positive) and removes (negative) places, then reads the list from its oldest.
    fn check(steps: &[i32], expected: &[usize]) {
        let mut list = InFlight::new(5);
        for &step in steps {
            let place = usize::try_from(step.abs()).unwrap();
            if step > 0 { list.push(place) } else { list.remove(place) }
        }
        let order = std::iter::from_fn(|| list.oldest().inspect(|&oldest| list.remove(oldest)));
        assert_eq!(order.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn order_of_beginning_is_kept() {
        check(&[], &[]);
        check(&[3, 1, 2], &[3, 1, 2]);
        check(&[3, 1, 2, -1], &[3, 2]);
        check(&[3, 1, 2, -3, 3], &[1, 2, 3]);
        check(&[3, 1, 2, -2, -3, -1, 4], &[4]);
    }
}
