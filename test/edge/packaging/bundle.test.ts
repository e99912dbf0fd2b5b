import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, test } from 'vitest'
import { bundlePrograms } from '../../../edge/packaging/bundle.ts'
import { packageRoot } from '../../support/programs.ts'

test('a bundled program has one byte per character, and the same output', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'larder-bundle-'))
  try {
    const [compiled, out] = [join(folder, 'compiled'), join(folder, 'out')]
    mkdirSync(join(compiled, 'edge'), { recursive: true })
    writeFileSync(
      join(compiled, 'edge/main.js'),
      'export const said = [`${1} → ${2}`, "Zürich…", /^[–—]$/.test("–"), "🍎".length, { "größe": 1 }]',
    )
    await bundlePrograms(packageRoot(), compiled, out, ['edge/main.js'])
    const files = readdirSync(out, { recursive: true, encoding: 'utf8' })
      .map((name) => join(out, name))
      .filter((path) => statSync(path).isFile())
    for (const path of files) expect(readFileSync(path, 'utf8')).toMatch(/^[\0-\x7f]*$/)
    const program = (await import(pathToFileURL(join(out, 'edge/main.js')).href)) as { said: unknown }
    expect(program.said).toEqual(['1 → 2', 'Zürich…', true, 2, { größe: 1 }])
  } finally {
    rmSync(folder, { recursive: true })
  }
})
