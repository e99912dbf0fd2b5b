import { connect } from 'node:net'
import { type GpioAddress, socketLinePort } from '../../../protocol/gpio/socket.ts'
import { GpioClient } from '../../../protocol/gpio/client.ts'
import type { GpioLines } from '../../../protocol/model/hardware.ts'
import type { Log } from '../../../protocol/model/log.ts'
import type { Runtime } from '../../../protocol/model/runtime.ts'

/**
 * GPIO lines over a socket (`protocol/gpio/messages.ts`), for machines on which a simulated chip cannot be
 * mounted as a sysfs tree. It reconnects without end. Without a connection, reads are `undefined` and writes
 * return false.
 */
export function createSocketLines(options: { address: GpioAddress; runtime: Runtime; log: Log }): GpioLines {
  return new GpioClient({
    runtime: options.runtime,
    log: options.log,
    open: (handlers) => socketLinePort(connect({ noDelay: true, ...options.address }), handlers),
  })
}
