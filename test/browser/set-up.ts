import { beforeAll, beforeEach } from 'vitest'
import { openBrowser, type Browser } from '../support/browser.ts'
import { missing, service } from '../support/services.ts'

/** A test that is left out on a machine without Chromium. */
export const browserTest = service('chromium')
const isLeftOut = missing('chromium') !== undefined
/** Time that a busy machine may need to build pages and to start programs, in milliseconds. */
const SET_UP_MS = 300_000

/** Makes an object once for all tests of a file or group, and ends it after them. The tests use it like the object itself. */
export const once = <T extends object>(make: Make<T>, end?: End<T>): T => made(beforeAll, make, end)
/** Makes an object for each try of a test. */
export const eachTime = <T extends object>(make: Make<T>, end?: End<T>): T => made(beforeEach, make, end)

export const useBrowser = (): Browser => once(openBrowser, (browser) => browser.close())

/** Each width in pixels, and each colour scheme on a telephone and on a wide screen. Layout and colours do not depend on each other. */
export const screens = [
  { width: 390, colorScheme: 'light' },
  { width: 390, colorScheme: 'dark' },
  { width: 768, colorScheme: 'light' },
  { width: 1400, colorScheme: 'dark' },
] as const

type Make<T> = () => T | Promise<T>
type End<T> = (present: T) => unknown

function made<T extends object>(
  before: typeof beforeAll | typeof beforeEach,
  make: Make<T>,
  end: End<T> = () => {},
): T {
  let present: T | undefined
  before(async () => {
    if (isLeftOut) return undefined
    const now = (present = await make())
    return async () => void (await end(now))
  }, SET_UP_MS)
  return new Proxy({} as T, {
    get: (_, name) => Reflect.get(present!, name) as unknown,
    set: (_, name, value) => Reflect.set(present!, name, value),
  })
}
