import type { GpioLines } from '../protocol/model/hardware.ts'
import type { Log } from '../protocol/model/log.ts'
import type { Runtime } from '../protocol/model/runtime.ts'
import type { LockConfig } from './config.ts'

/** The lines of a hub without GPIO: no line can be read or driven. */
const noGpio: GpioLines = {
  read: () => undefined,
  write: () => false,
  watch: () => () => {},
  close() {},
}

export async function openGpio(
  { gpio, hardware }: Pick<LockConfig, 'gpio' | 'hardware'>,
  runtime: Runtime,
  log: Log,
): Promise<GpioLines> {
  switch (gpio.kind) {
    case 'none':
      return noGpio
    case 'socket': {
      const { createSocketLines } = await import('./hardware/gpio/socket-lines.ts')
      return createSocketLines({ address: gpio.address, runtime, log })
    }
    case 'onoff': {
      // Imported only here: its native part is not needed otherwise, and is not available on every system.
      const { OnoffLines } = await import('./hardware/gpio/onoff-lines.ts')
      return new OnoffLines({ hardware: hardware.gpio, runtime, log })
    }
  }
}
