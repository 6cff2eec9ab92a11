//! The requests in flight, in the order they began: a doubly linked list threaded through one vector.
//!
//! All requests of a load have the same timeout, so the oldest is always the next to expire: beginning, ending and finding it
//! take constant time, and no timer is set or cancelled per request.

/// Which of a worker's connections have a request in flight, oldest first.
pub(crate) struct InFlight {
    // One per connection, and behind them the list's own: it comes before the oldest and after the youngest.
    links: Vec<Link>,
}

#[derive(Clone, Copy)]
struct Link {
    older: usize,
    younger: usize,
}

impl InFlight {
    /// An empty list for so many connections.
    pub(crate) fn new(connections: usize) -> InFlight {
        // Whoever is linked to itself is not in the list.
        InFlight { links: (0..=connections).map(|i| Link { older: i, younger: i }).collect() }
    }

    /// Adds a connection as the youngest. It must not be in the list.
    pub(crate) fn push(&mut self, connection: usize) {
        let end = self.end();
        let youngest = self.links[end].older;
        self.links[connection] = Link { older: youngest, younger: end };
        self.links[youngest].younger = connection;
        self.links[end].older = connection;
    }

    /// Takes a connection out, wherever it is.
    pub(crate) fn remove(&mut self, connection: usize) {
        let Link { older, younger } = self.links[connection];
        self.links[older].younger = younger;
        self.links[younger].older = older;
        self.links[connection] = Link { older: connection, younger: connection };
    }

    /// The connection whose request began first.
    pub(crate) fn oldest(&self) -> Option<usize> {
        let end = self.end();
        let oldest = self.links[end].younger;
        (oldest != end).then_some(oldest)
    }

    fn end(&self) -> usize {
        self.links.len() - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pushes (positive) and removes (negative) connections, then reads the list from its oldest.
    fn check(steps: &[i32], expected: &[usize]) {
        let mut list = InFlight::new(5);
        for &step in steps {
            let connection = usize::try_from(step.abs()).unwrap();
            if step > 0 { list.push(connection) } else { list.remove(connection) }
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
