import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, test } from 'vitest'
import { bundlePrograms } from '../../../edge/packaging/bundle.ts'
import { packageRoot } from '../../support/programs.ts'

const filesIn = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => join(folder, name))
    .filter((each) => statSync(each).isFile())

/** Bundles a program of one source, and passes its path and the folder of the bundle. */
async function withBundle(
  source: string,
  use: (program: string, folder: string) => void | Promise<void>,
): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'larder-bundle-'))
  try {
    const [compiled, out] = [join(folder, 'compiled'), join(folder, 'out')]
    mkdirSync(join(compiled, 'edge'), { recursive: true })
    writeFileSync(join(compiled, 'edge/main.js'), source)
    await bundlePrograms(packageRoot(), compiled, out, ['edge/main.js'])
    await use(join(out, 'edge/main.js'), out)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

test('a bundled program has one byte per character, and the same output', () =>
  withBundle(
    'export const said = [`${1} → ${2}`, "Zürich…", /^[–—]$/.test("–"), "🍎".length, { "größe": 1 }]',
    async (path, folder) => {
      for (const file of filesIn(folder)) expect(readFileSync(file, 'utf8')).toMatch(/^[\0-\x7f]*$/)
      const program = (await import(pathToFileURL(path).href)) as { said: unknown }
      expect(program.said).toEqual(['1 → 2', 'Zürich…', true, 2, { größe: 1 }])
    },
  ))

test('a bundled program that imports the HTTP server loads nothing of fetch', () =>
  withBundle(
    `import * as http from 'node:http'
     import { createServer, request } from 'node:http'
     const isBound = http.createServer === createServer && typeof request === 'function'
     const loaded = process.moduleLoadList.filter((name) => name.includes('undici'))
     process.stdout.write(JSON.stringify({ isBound, loaded }))`,
    (path, folder) => {
      // Such an import loads fetch in Node 22 and later, but not in Node 20.
      for (const file of filesIn(folder))
        expect(readFileSync(file, 'utf8')).not.toMatch(/\b(from|import|require)\s*\(?\s*["'`]node:http["'`]/)
      const said = execFileSync(process.execPath, [path], { encoding: 'utf8' })
      expect(JSON.parse(said)).toEqual({ isBound: true, loaded: [] })
    },
  ))
