"""CRC-32C in Python: a second opinion on the checksums that Stoker writes."""


def crc32c(data: bytes) -> int:
    """Bit by bit, as RFC 3720 defines it (appendix B.4 has its test vectors)."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF
