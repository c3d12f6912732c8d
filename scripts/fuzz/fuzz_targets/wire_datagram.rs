//! Datagrams that anybody may send: heartbeats, as they are and with header and version put right,
//! and telemetry.

#![no_main]

use bytes::BytesMut;
use kelp_wire::{
    DATAGRAM_BYTES_MAX, Datagram, DatagramHeader, DatagramOpcode, HEARTBEAT_VERSION, MAGIC,
    SealedHeartbeat, Telemetry, encode_telemetry,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    check(bytes);
    let heartbeat = [&[HEARTBEAT_VERSION], bytes].concat();
    check_body(DatagramOpcode::Heartbeat, &heartbeat);
    check_body(DatagramOpcode::Telemetry, bytes);
});

fn check_body(opcode: DatagramOpcode, body: &[u8]) {
    let header = DatagramHeader {
        magic: MAGIC,
        opcode: opcode as u8,
        body_bytes: u16::try_from(body.len()).unwrap_or(u16::MAX),
    };
    check(&[&header.encode(), body].concat());
}

fn check(bytes: &[u8]) {
    let Ok(datagram) = kelp_fuzz::unallocated(|| Datagram::decode(bytes)) else {
        return;
    };
    assert!(bytes.len() <= DATAGRAM_BYTES_MAX, "the limit was passed");
    match datagram.opcode {
        DatagramOpcode::Heartbeat => check_heartbeat(&datagram),
        DatagramOpcode::Telemetry => check_telemetry(&datagram),
    }
}

fn check_heartbeat(datagram: &Datagram<'_>) {
    let decode = || SealedHeartbeat::decode(datagram).map(|sealed| sealed.open(|_, _| true));
    let Ok(Some(heartbeat)) = kelp_fuzz::unallocated(decode) else {
        return;
    };
    let mut bytes = BytesMut::new();
    heartbeat.encode(&mut bytes, |_| [7; 16]);
    let datagram = Datagram::decode(&bytes).expect("it was just encoded");
    let sealed = SealedHeartbeat::decode(&datagram).expect("it was just encoded");
    assert_eq!(sealed.open(|_, mac| *mac == [7; 16]), Some(heartbeat));
}

fn check_telemetry(datagram: &Datagram<'_>) {
    let telemetry = Telemetry::decode(datagram);
    kelp_fuzz::unallocated(|| telemetry.readings().count());
    for reading in telemetry.readings().flatten() {
        let mut bytes = BytesMut::new();
        encode_telemetry(&mut bytes, &[reading]).expect("it follows the syntax");
        let datagram = Datagram::decode(&bytes).expect("it was just encoded");
        let back: Vec<_> = Telemetry::decode(&datagram).readings().collect();
        assert_eq!(back, [Ok(reading)]);
    }
}
