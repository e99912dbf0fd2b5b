import { silentLog } from '../../protocol/model/log.ts'
import { systemRuntime } from '../../protocol/system-runtime.ts'
import { mountPty } from '../../simulator/mounts/serial-ports.ts'
import { createPromptController } from './prompt-controller.ts'

/**
 * The other ends of the two serial lines of `round-trip.ts`, in one process: a prompt controller for the hub,
 * an echo for the bare hops. Arguments: the links of the pseudo-terminals, the hub's first.
 */
const [controllerLink, echoLink] = process.argv.slice(2)
const { random } = systemRuntime()

/** A line on a pseudo-terminal; `open` receives the send function and returns the receiver. */
function lay(link: string, open: (send: (line: string) => void) => (line: string) => void): void {
  const listeners = new Set<(line: string) => void>()
  const toController = open((line) => {
    for (const listener of listeners) listener(line)
  })
  const onLine = (listener: (line: string) => void) => {
    listeners.add(listener)
    return () => void listeners.delete(listener)
  }
  mountPty({ controllerId: link, port: link, toController, onLine }, link, silentLog)
}

lay(controllerLink!, (send) => createPromptController(random, send))
lay(echoLink!, (send) => send)
process.once('disconnect', () => process.exit(0))
process.send!('ready')
