import { deflateSync } from 'node:zlib'

/** 0…255 each. */
export type Colour = readonly [red: number, green: number, blue: number]

export interface Picture {
  width: number
  height: number
  colourAt: (x: number, y: number) => Colour
}

/** A picture as a PNG file (PNG specification, third edition: §5 chunks, §11.2 critical ones). */
export function encodePng({ width, height, colourAt }: Picture): Buffer {
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width, 0)
  header.writeUInt32BE(height, 4)
  // Eight bits a sample, red, green and blue.
  header.set([8, 2], 8)
  const rows = Array.from({ length: height }, (_row, y) =>
    // Each row begins with its filter: none.
    [0, ...Array.from({ length: width }, (_column, x) => colourAt(x, y)).flat()],
  )
  return Buffer.concat([
    Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]),
    chunk('IHDR', header),
    chunk('IDAT', deflateSync(Buffer.from(rows.flat()))),
    chunk('IEND', Buffer.alloc(0)),
  ])
}

function chunk(type: string, data: Buffer): Buffer {
  const named = Buffer.concat([Buffer.from(type, 'latin1'), data])
  const frame = Buffer.alloc(8)
  frame.writeUInt32BE(data.length, 0)
  frame.writeUInt32BE(crc32(named), 4)
  return Buffer.concat([frame.subarray(0, 4), named, frame.subarray(4)])
}

/** The CRC of ISO 3309, as PNG has it (annex D). */
function crc32(bytes: Buffer): number {
  let crc = 0xffffffff
  for (const byte of bytes) {
    crc ^= byte
    for (let bit = 0; bit < 8; bit += 1) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1
  }
  return (crc ^ 0xffffffff) >>> 0
}
