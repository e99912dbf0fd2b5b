import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { chromium, type BrowserContext } from 'playwright-core'
import { onPath } from './on-path.ts'

/** With these flags Chromium calls no host outside this machine. */
export const chromiumFlags = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

/** Runs Chromium with its own profile during `work`. */
export async function inChromium(
  work: (browser: BrowserContext) => Promise<void>,
  { flags = [], width = 1280 }: { flags?: readonly string[]; width?: number } = {},
): Promise<void> {
  const profile = await mkdtemp(join(tmpdir(), 'larder-chromium-'))
  const browser = await chromium.launchPersistentContext(profile, {
    executablePath: onPath('chromium')!,
    args: [...chromiumFlags, ...flags],
    viewport: { width, height: 900 },
  })
  try {
    await work(browser)
  } finally {
    await browser.close()
    await rm(profile, { recursive: true, force: true })
  }
}
