import '../../protocol/require-node.ts'
import '../../protocol/private-files.ts'
import { progressOn } from '../../protocol/model/progress.ts'
import { stopper } from '../../protocol/model/stopping.ts'
import { systemRuntime } from '../../protocol/system-runtime.ts'
import { Demo, DemoError } from './demo.ts'
import { demoHelp, readDemoSettings } from './settings.ts'

const argv = process.argv.slice(2)
const read = readDemoSettings(argv, process.env)
if (argv.includes('--help')) process.stdout.write(demoHelp())
else if (!read.ok) {
  process.stderr.write(`${read.problems.join('\n')}\n`)
  process.exitCode = 2
} else {
  const runtime = systemRuntime()
  const complain = (_about: object, text: string) => void process.stderr.write(`${text}\n`)
  const print = (text: string) => void process.stdout.write(`${text}\n`)
  const progress = progressOn(process.stderr, runtime.clock)
  const demo = new Demo({ settings: read.settings, runtime, print, progress })
  const stop = stopper({
    clock: runtime.clock,
    log: { info() {}, warn: complain, error: complain },
    timeoutMs: read.settings.shutdownTimeoutMs,
    stop: () => demo.stop(),
    exit: (code) => process.exit(code),
  })
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, stop)
  try {
    await demo.ready
  } catch (error) {
    process.stderr.write(`${error instanceof DemoError ? error.message : String(error)}\n`)
    process.exit(1)
  }
}
