import { parseGpioAddress, type GpioAddress } from '../../../protocol/gpio/socket.ts'

export interface SysfsOptions {
  socket: GpioAddress
  hardwareFile: string
  base: number
  pidFile: string | undefined
  command: string[]
}

export const sysfsUsage = `Runs a command with /sys/class/gpio being the GPIO chip of a simulated hub.

  sysfs-main.js --socket ADDRESS --hardware FILE [--base N] [--pid-file FILE] -- COMMAND…

  --socket ADDRESS   the simulator's GPIO socket: unix:PATH or tcp:HOST:PORT
  --hardware FILE    the hub's hardware.json, which names the lines
  --base N           the number of the chip's first pin (default 512)
  --pid-file FILE    where COMMAND's process id is written
`

/** Reads the command line; a string says what is wrong with it. */
export function parseSysfsOptions(argv: readonly string[]): SysfsOptions | string {
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
