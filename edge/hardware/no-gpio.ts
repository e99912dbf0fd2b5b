import type { GpioLines } from '../../protocol/model/hardware.ts'

/** A hub without GPIO: nothing can be read, nothing is driven. */
export const noGpio: GpioLines = {
  read: () => undefined,
  write: () => false,
  watch() {},
  close() {},
}
