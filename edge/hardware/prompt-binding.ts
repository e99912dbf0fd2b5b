import { readSync, writeSync } from 'node:fs'
import { SerialPort } from 'serialport'

/** What ports of `serialport` have beside their common interface where the system is a Unix. */
interface PolledPort {
  readonly isOpen: boolean
  readonly fd: number | null
  readonly poller: { once(event: 'readable', done: (error: Error | null) => void): unknown }
  read(buffer: Buffer, offset: number, length: number): Promise<{ buffer: Buffer; bytesRead: number }>
  write(buffer: Buffer): Promise<void>
}

/**
 * `serialport`'s own binding, whose ports read and write in the thread that asks. The library has a thread of Node's pool do
 * each read and write of a descriptor that never blocks: two changes of thread for a line of a few bytes, and as many again
 * to learn that there is nothing more to read. Those cost more than all that the hub does with the line.
 */
export const promptBinding = {
  list: () => SerialPort.binding.list(),
  async open(options: { path: string; baudRate: number }) {
    const port = await SerialPort.binding.open(options)
    return 'poller' in port ? Object.assign(port, promptly(port)) : port
  },
}

function promptly(port: PolledPort): Pick<PolledPort, 'read' | 'write'> {
  // Of the port's class: what is assigned takes the place of this.
  const writeLater = port.write.bind(port)
  return {
    async read(buffer, offset, length) {
      for (;;) {
        await readable(port)
        if (port.fd === null) throw canceled()
        const bytesRead = unlessBusy(() => readSync(port.fd!, buffer, offset, length, null))
        // None at all: the line hung up.
        if (bytesRead !== undefined) return { buffer, bytesRead }
      }
    },
    async write(buffer) {
      if (port.fd === null) throw canceled()
      const written = unlessBusy(() => writeSync(port.fd!, buffer)) ?? 0
      // The line has no room for all of it: the rest goes when it has.
      if (written < buffer.length) await writeLater(buffer.subarray(written))
    },
  }
}

const readable = ({ poller }: PolledPort): Promise<void> =>
  new Promise(
    (resolve, reject) => void poller.once('readable', (error) => (error ? reject(error) : resolve())),
  )

/** As `serialport` calls what ends because the port was closed. */
const canceled = (): Error => Object.assign(new Error('Port is not open'), { canceled: true })

/** Undefined where the system would have to wait. */
function unlessBusy(call: () => number): number | undefined {
  try {
    return call()
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EAGAIN' || code === 'EWOULDBLOCK' || code === 'EINTR') return undefined
    throw error
  }
}
