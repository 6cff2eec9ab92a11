//! Drive a load against an address and hand records to sinks.
