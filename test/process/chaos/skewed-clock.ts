import { readFileSync } from 'node:fs'

/*
 * Imported by a program before anything else (`--import`). The program's wall clock is wrong by the
 * milliseconds in the file CLOCK_SKEW_FILE, and follows changes of the file. Its monotonic clock is always
 * correct.
 */

const POLL_MS = 100

const path = process.env['CLOCK_SKEW_FILE']
const right = Date
let skewMs = 0

function look(file: string): void {
  try {
    const told = Number(readFileSync(file, 'utf8'))
    if (Number.isFinite(told)) skewMs = told
  } catch {
    // Without the file the clock is correct.
  }
}

if (path !== undefined) {
  look(path)
  setInterval(() => look(path), POLL_MS).unref()
  const now = (): number => right.now() + skewMs
  globalThis.Date = new Proxy(right, {
    construct: (target, args: unknown[], newTarget) =>
      Reflect.construct(target, args.length === 0 ? [now()] : args, newTarget) as Date,
    apply: () => new right(now()).toString(),
    get: (target, key) => (key === 'now' ? now : (Reflect.get(target, key) as unknown)),
  })
}
