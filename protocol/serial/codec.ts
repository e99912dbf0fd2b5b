import { type Frame, type FrameBody, frameSchemas, type FrameType, MAX_LINE_BYTES } from './frames.ts'

export type DecodeError = 'too_long' | 'malformed' | 'crc' | 'unknown_type' | 'bad_field'
/** `seq` is known if the checksum was right: such a frame can be answered with NAK. */
export type Decoded = { ok: true; frame: Frame } | { ok: false; error: DecodeError; seq?: number }

const hex4 = (value: number): string => value.toString(16).padStart(4, '0')

/** Writes a frame as one line without its line feed. Throws a `RangeError` if the line would be too long. */
export function encodeFrame(frame: Frame): string {
  const { seq, type, ...fields } = frame
  const words = [`~${hex4(seq)}`, type as string]
  for (const [key, value] of wireFields(type, fields)) words.push(`${key}=${value}`)
  const text = words.join(' ')
  const line = `${text}*${hex4(crc16(text))}`
  if (line.length > MAX_LINE_BYTES) throw new RangeError(`frame ${type} is ${line.length} bytes long`)
  return line
}

/** Whether a receiver can read a frame with this body. */
export const isReadable = <T extends FrameType>(type: T, body: FrameBody<T>): boolean =>
  frameSchemas[type].safeParse(Object.fromEntries(wireFields(type, body))).success

/** The present fields of a type, in their order, as the wire writes them. */
function wireFields(type: FrameType, body: object): [key: string, value: string][] {
  return keysOf.get(type)!.flatMap((key) => {
    const value = (body as Record<string, unknown>)[key]
    return value === undefined ? [] : [[key, wireValue(key, value)]]
  })
}

const keysOf: ReadonlyMap<string, readonly string[]> = new Map(
  Object.entries(frameSchemas).map(([type, { shape }]) => [type, Object.keys(shape)]),
)

function wireValue(key: string, value: unknown): string {
  if (typeof value === 'boolean') return value ? '1' : '0'
  return key === 's' ? hex4(value as number) : String(value)
}

/** Reads one line (without its line feed). Never throws. */
export function decodeFrame(line: string): Decoded {
  const text = line.endsWith('\r') ? line.slice(0, -1) : line
  if (text.length > MAX_LINE_BYTES) return { ok: false, error: 'too_long' }
  const match = /^(~([0-9a-f]{4}) ([A-Z]{2,8})((?: [a-z]+=[A-Za-z0-9_.:+-]+)*))\*([0-9a-f]{4})$/.exec(text)
  if (!match) return { ok: false, error: 'malformed' }
  const [, covered, seq, type, rest, crc] = match
  if (crc16(covered!) !== Number.parseInt(crc!, 16)) return { ok: false, error: 'crc' }
  const number = Number.parseInt(seq!, 16)
  if (!Object.hasOwn(frameSchemas, type!)) return { ok: false, error: 'unknown_type', seq: number }
  const fields: Record<string, string> = {}
  for (const word of rest!.split(' ').slice(1)) {
    const split = word.indexOf('=')
    const key = word.slice(0, split)
    if (Object.hasOwn(fields, key)) return { ok: false, error: 'bad_field', seq: number }
    fields[key] = word.slice(split + 1)
  }
  const parsed = frameSchemas[type as FrameType].safeParse(fields)
  if (!parsed.success) return { ok: false, error: 'bad_field', seq: number }
  return { ok: true, frame: { seq: number, type, ...parsed.data } as Frame }
}

/** A UUID as frames contain it (32 hexadecimal digits), and back. */
export const opOfUuid = (uuid: string): string => uuid.replaceAll('-', '')
export const uuidOfOp = (op: string): string =>
  [op.slice(0, 8), op.slice(8, 12), op.slice(12, 16), op.slice(16, 20), op.slice(20)].join('-')

/** CRC-16/CCITT-FALSE (polynomial 0x1021, initial value 0xFFFF, no reflection) of an ASCII text. SPEC §2. */
export function crc16(text: string): number {
  let crc = 0xffff
  for (let index = 0; index < text.length; index++)
    crc = ((crc << 8) & 0xffff) ^ CRC_OF_BYTE[(crc >> 8) ^ (text.charCodeAt(index) & 0xff)]!
  return crc
}

const CRC_OF_BYTE = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8
  for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1
  return crc & 0xffff
})
