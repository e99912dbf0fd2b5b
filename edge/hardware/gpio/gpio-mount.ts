import { z } from 'zod'
import { parseGpioAddress, type GpioAddress } from '../../../protocol/gpio/address.ts'
import type { GpioLines } from '../../../protocol/model/gpio.ts'
import { createOnoffLines, type OnoffLinesOptions } from './onoff-lines.ts'
import { createSocketLines } from './socket-lines.ts'

/** How a hub reaches its GPIO lines. */
export type GpioMount = { kind: 'sysfs' } | { kind: 'socket'; address: GpioAddress }

/** A setting's text: `sysfs`, or the address of a simulated chip's socket, `unix:PATH` or `tcp:HOST:PORT`. */
export const GpioMountText = z.string().transform((text, context): GpioMount => {
  if (text === 'sysfs') return { kind: 'sysfs' }
  const address = parseGpioAddress(text)
  if (address) return { kind: 'socket', address }
  context.addIssue({ code: 'custom', message: 'must be sysfs, unix:PATH or tcp:HOST:PORT' })
  return z.NEVER
})

export function openGpioLines(mount: GpioMount, options: OnoffLinesOptions): GpioLines {
  switch (mount.kind) {
    case 'sysfs':
      return createOnoffLines(options)
    case 'socket':
      return createSocketLines({ address: mount.address, runtime: options.runtime, log: options.log })
  }
}
