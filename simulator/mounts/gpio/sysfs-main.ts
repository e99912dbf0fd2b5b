import '../../../protocol/require-node.ts'
import { readFileSync, rmSync, writeFileSync, openSync, read, writeSync } from 'node:fs'
import { connect } from 'node:net'
import { pino } from 'pino'
import { GpioClient } from '../../../protocol/gpio/client.ts'
import {
  formatGpioAddress,
  parseGpioAddress,
  socketLinePort,
  type GpioAddress,
} from '../../../protocol/gpio/socket.ts'
import { HardwareDescription } from '../../../protocol/model/hardware.ts'
import { systemRuntime } from '../../../protocol/system-runtime.ts'
import { createFuseServer } from './fuse-server.ts'
import { startMountedCommand } from './mounted-command.ts'
import { createPins } from './pins.ts'
import { createSysfsTree, valueNode } from './sysfs-tree.ts'

/** Larger than any request of the kernel, which requires at least 8 KiB. */
const BUFFER_SIZE = 64 * 1024

interface FuseDevice {
  /** The descriptor for the process that mounts. */
  readonly descriptor: number
  /** Passes each request to `answer` and writes its result. Calls `onEnd` when the mount is gone. */
  serve(answer: (request: Buffer) => Buffer | undefined, onEnd: (reason: string) => void): void
  /** Writes an unsolicited message; does nothing if the mount is gone. */
  notify(message: Buffer): void
}

/** The server's end of a FUSE mount. Throws if `/dev/fuse` cannot be opened. */
function openFuseDevice(): FuseDevice {
  const descriptor = openSync('/dev/fuse', 'r+')
  const buffer = Buffer.alloc(BUFFER_SIZE)

  function write(message: Buffer): void {
    try {
      writeSync(descriptor, message)
    } catch (error) {
      // ENOENT: the request was cancelled, or no process waits with that handle. ENODEV: the mount is gone; the read
      // reports it.
      const code = (error as NodeJS.ErrnoException).code
      if (code !== 'ENOENT' && code !== 'ENODEV') throw error
    }
  }

  return {
    descriptor,
    serve(answer, onEnd) {
      const next = () =>
        read(descriptor, buffer, 0, buffer.length, null, (error, length) => {
          // ENOENT: the request was cancelled while it was read.
          if (error && (error.code === 'ENOENT' || error.code === 'EINTR' || error.code === 'EAGAIN'))
            return next()
          if (error) return onEnd(error.code ?? error.message)
          const reply = answer(buffer.subarray(0, length))
          if (reply) write(reply)
          next()
        })
      next()
    },
    notify: write,
  }
}

/** A Raspberry Pi's chip has this number of pins. */
const LEAST_PINS = 54
const CONNECT_TIMEOUT_MS = 15_000
const KILL_AFTER_MS = 5000
const UNMOUNT_TIMEOUT_MS = 1000

interface SysfsOptions {
  socket: GpioAddress
  hardwareFile: string
  base: number
  pidFile: string | undefined
  command: string[]
}

const sysfsUsage = `Runs a command with /sys/class/gpio being the GPIO chip of a simulated hub.

  sysfs-main.js --socket ADDRESS --hardware FILE [--base N] [--pid-file FILE] -- COMMAND…

  --socket ADDRESS   the simulator's GPIO socket: unix:PATH or tcp:HOST:PORT
  --hardware FILE    the hub's hardware.json, which names the lines
  --base N           the number of the chip's first pin (default 512)
  --pid-file FILE    where COMMAND's process id is written
`

const log = pino(
  { name: 'gpio-sysfs', level: process.env['LOG_LEVEL'] ?? 'info' },
  pino.destination({ dest: 2, sync: true }),
)
const runtime = systemRuntime()

// A read of /dev/fuse is always pending, and a normal exit would wait for it without end.
process.on('uncaughtException', (error) => {
  log.fatal(error)
  process.kill(process.pid, 'SIGKILL')
})

const argv = process.argv.slice(2)
const options = parseSysfsOptions(argv)
if (argv.includes('--help') && !argv.slice(0, argv.indexOf('--help')).includes('--')) {
  process.stdout.write(sysfsUsage)
} else if (typeof options === 'string') {
  process.stderr.write(`${options}\n\n${sysfsUsage}`)
  process.exitCode = 2
} else run(options)

function run({ socket, hardwareFile, base, pidFile, command }: SysfsOptions): void {
  const hardware = HardwareDescription.parse(JSON.parse(readFileSync(hardwareFile, 'utf8')))
  const { chipLabel: label, lines } = hardware.gpio
  const count = Math.max(LEAST_PINS, ...lines.map((line) => line.offset + 1))

  const client = new GpioClient({
    runtime,
    log,
    open: (handlers) => socketLinePort(connect({ noDelay: true, ...socket }), handlers),
  })
  const giveUp = runtime.clock.after(CONNECT_TIMEOUT_MS, () => {
    log.fatal(`no simulator answers at ${formatGpioAddress(socket)}`)
    process.exit(1)
  })
  let started = false
  client.onUpdate(() => {
    if (started || !client.lines()) return
    started = true
    giveUp()
    start()
  })
  process.once('disconnect', () => void (started || process.exit(1)))

  function start(): void {
    const device = openFuseDevice()
    const pins = createPins(
      { label, base, count, lines },
      {
        level: (name) => client.read(name),
        isDriven: (name) => client.lines()?.find((line) => line.name === name)?.driven ?? false,
        drive: (name, level) => client.write(name, level),
      },
      (pin) => {
        for (const message of fuse.wake(valueNode(pin))) device.notify(message)
      },
    )
    const fuse = createFuseServer(createSysfsTree(pins))
    client.onUpdate(() => pins.refresh())

    let served: Promise<unknown> = Promise.resolve()
    const child = startMountedCommand({
      command,
      descriptor: device.descriptor,
      onMounted() {
        if (pidFile !== undefined) writeFileSync(pidFile, `${child.pid}\n`)
        if (process.connected) process.send?.({ type: 'started', pid: child.pid })
        served = new Promise((resolve) => device.serve((request) => fuse.answer(request), resolve))
      },
    })
    child.once('error', (error) => {
      throw error
    })
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGUSR1', 'SIGUSR2'] as const)
      process.on(signal, () => child.kill(signal))
    process.once('disconnect', () => {
      child.kill('SIGTERM')
      runtime.clock.after(KILL_AFTER_MS, () => child.kill('SIGKILL'))
    })
    child.once('exit', (code, signal) => {
      if (pidFile !== undefined) rmSync(pidFile, { force: true })
      client.close()
      if (process.connected) process.disconnect()
      void end(code, signal, served)
    })
  }
}

/**
 * Exits with the command's exit code. The namespace, the mount and the pending read end too, unless the command left
 * processes behind. In that case only a kill ends this process.
 */
async function end(
  code: number | null,
  signal: NodeJS.Signals | null,
  served: Promise<unknown>,
): Promise<void> {
  if (signal !== null) {
    process.removeAllListeners(signal)
    process.kill(process.pid, signal)
    return
  }
  runtime.clock.after(UNMOUNT_TIMEOUT_MS, () => process.kill(process.pid, 'SIGKILL'))
  await served
  process.exit(code ?? 1)
}

/** Parses the command line; a string is the description of an error. */
function parseSysfsOptions(argv: readonly string[]): SysfsOptions | string {
  const end = argv.indexOf('--')
  const command = end < 0 ? [] : argv.slice(end + 1)
  const given = new Map<string, string>()
  const words = end < 0 ? argv : argv.slice(0, end)
  for (let index = 0; index < words.length; index += 2) {
    const [name, value] = [words[index]!, words[index + 1]]
    if (!['--socket', '--hardware', '--base', '--pid-file'].includes(name)) return `unknown option ${name}`
    if (value === undefined) return `${name} needs a value`
    given.set(name, value)
  }
  const socket = parseGpioAddress(given.get('--socket') ?? '')
  const hardwareFile = given.get('--hardware')
  const base = given.get('--base') ?? '512'
  if (!socket) return '--socket must be unix:PATH or tcp:HOST:PORT'
  if (hardwareFile === undefined) return '--hardware is missing'
  if (!/^\d{1,6}$/.test(base)) return '--base must be a number'
  if (command.length === 0) return 'a command must follow --'
  return { socket, hardwareFile, base: Number(base), pidFile: given.get('--pid-file'), command }
}
