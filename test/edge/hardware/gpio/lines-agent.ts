import { readFileSync, writeFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { OnoffLines } from '../../../../edge/hardware/gpio/onoff-lines.ts'
import { HardwareDescription } from '../../../../protocol/model/hardware.ts'
import { silentLog } from '../../../../protocol/model/log.ts'
import { systemRuntime } from '../../../../protocol/system-runtime.ts'

/**
 * The hub's lines on onoff in a separate program, driven by lines on standard input; it answers on standard
 * output.
 */
export type LinesRequest =
  | { do: 'read'; name: string }
  | { do: 'write'; name: string; level: 0 | 1 }
  /** `thenUnexport`: a pin that is unexported at the end, as another program can do. */
  | { do: 'stall'; ms: number; thenUnexport?: number }

const hardware = HardwareDescription.parse(JSON.parse(readFileSync(process.argv[2]!, 'utf8')))
const lines = new OnoffLines({ hardware: hardware.gpio, runtime: systemRuntime(), log: silentLog })
const say = (message: object) => void process.stdout.write(`${JSON.stringify(message)}\n`)

for (const { name } of hardware.gpio.lines)
  lines.watch(name, () => say({ edge: name, level: lines.read(name) }))

createInterface({ input: process.stdin }).on('line', (line) => {
  const request = JSON.parse(line) as LinesRequest
  if (request.do === 'read') say({ value: lines.read(request.name) ?? null })
  else if (request.do === 'write') say({ value: lines.write(request.name, request.level) })
  else {
    say({ stalling: true })
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, request.ms)
    if (request.thenUnexport !== undefined)
      writeFileSync('/sys/class/gpio/unexport', String(request.thenUnexport))
  }
})
say({ value: 'ready' })
