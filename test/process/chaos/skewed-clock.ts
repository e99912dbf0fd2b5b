import { readFileSync } from 'node:fs'

/*
 * To be imported by a program before anything else (`--import`): its wall clock is wrong by as many milliseconds as the file at
 * CLOCK_SKEW_FILE says, and changes while it runs when that file does. Its monotonic clock is never wrong.
 */

const LOOK_MS = 100

const path = process.env['CLOCK_SKEW_FILE']
const right = Date
let skewMs = 0

function look(file: string): void {
  try {
    const told = Number(readFileSync(file, 'utf8'))
    if (Number.isFinite(told)) skewMs = told
  } catch {
    // Nobody has said that it is wrong.
  }
}

if (path !== undefined) {
  look(path)
  setInterval(() => look(path), LOOK_MS).unref()
  const now = (): number => right.now() + skewMs
  globalThis.Date = new Proxy(right, {
    construct: (target, args: unknown[], newTarget) =>
      Reflect.construct(target, args.length === 0 ? [now()] : args, newTarget) as Date,
    apply: () => new right(now()).toString(),
    get: (target, key) => (key === 'now' ? now : (Reflect.get(target, key) as unknown)),
  })
}
