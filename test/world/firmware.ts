import type { FirmwareImage } from '../../edge/hardware/firmware-images.ts'
import { readImageHeader } from '../../protocol/serial/image.ts'
import { sumOf } from '../../simulator/firmware/image.ts'

/** An image as a hub has it in a file. */
export function imageOf(bytes: Uint8Array): FirmwareImage {
  return { ...readImageHeader(bytes)!, size: bytes.length, sum: sumOf(bytes), read: () => bytes }
}
