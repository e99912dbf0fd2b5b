import { MAX_IMAGE_BYTES } from './frames.ts'

/** The file of a firmware (SPEC §12): a header line, the program, and a signature of 64 bytes over both. */
export interface ImageHeader {
  kind: string
  build: number
}

export const SIGNATURE_BYTES = 64

const HEADER = /^larder-firmware kind=([A-Za-z0-9_.:+-]{1,40}) build=(\d{1,10})\n/

export const imageHeader = ({ kind, build }: ImageHeader): string =>
  `larder-firmware kind=${kind} build=${build}\n`

/** Reads the header of an image; undefined if the bytes are no image. */
export function readImageHeader(bytes: Uint8Array): ImageHeader | undefined {
  if (bytes.length > MAX_IMAGE_BYTES || bytes.length <= SIGNATURE_BYTES) return undefined
  const [, kind, build] = HEADER.exec(String.fromCharCode(...bytes.subarray(0, 100))) ?? []
  if (kind === undefined || Number(build) > 4_000_000_000) return undefined
  return { kind, build: Number(build) }
}
