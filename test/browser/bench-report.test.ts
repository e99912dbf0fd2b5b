import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'vitest'
import { reportOf } from '../bench/report.ts'
import { browserTest, useBrowser } from './set-up.ts'

const browser = useBrowser()

browserTest('the report of a benchmark run is one page without external files', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'larder-report-'))
  try {
    const growth = (at: number) => ({ of: 'orders', at, line: 'search' })
    const page = reportOf(
      [
        {
          title: 'search </script><b>',
          notes: ['a note'],
          figures: [
            { name: 'few', values: [1, 2, 3], unit: 'ms', growth: growth(10) },
            { name: 'many', values: [2, 4, 2.5], unit: 'ms', growth: growth(1000) },
            { name: 'many to few', values: [2, 2, 0.83], unit: 'times', aim: 'at most 2' },
          ],
        },
      ],
      ['a machine'],
    )
    const file = join(folder, 'report.html')
    writeFileSync(file, page)
    const { page: seen, problems } = await browser.open(`file://${file}`, { width: 1400 })
    // Two plots of distributions, one plot by rounds, one plot of growth.
    await expect.poll(() => seen.locator('.plots svg[viewBox]').count()).toBe(4)
    expect(await seen.locator('h2').textContent()).toBe('search </script><b>')
    expect(await seen.locator('tr:has-text("many to few") td').allTextContents()).toEqual([
      'many to few',
      '0.830',
      '2.00',
      '2.00',
      'times',
      'at most 2',
    ])
    expect(problems).toEqual([])
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})
