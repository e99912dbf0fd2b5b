/** CRC-16/CCITT-FALSE (polynomial 0x1021, initial value 0xFFFF, no reflection) of an ASCII text. SPEC §2. */
export function crc16(text: string): number {
  let crc = 0xffff
  for (let index = 0; index < text.length; index++) {
    crc ^= (text.charCodeAt(index) & 0xff) << 8
    for (let bit = 0; bit < 8; bit++)
      crc = crc & 0x8000 ? ((crc << 1) ^ 0x1021) & 0xffff : (crc << 1) & 0xffff
  }
  return crc
}
