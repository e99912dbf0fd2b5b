import { existsSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { expect, test } from 'vitest'

const root = resolve(import.meta.dirname, '..')
const MOST_BYTES = 80_000

test('each picture in a README exists, is small, and has a description', () => {
  const pictures = ['README.md', 'edge/README.md', 'simulator/README.md'].flatMap((readme) => {
    const text = readFileSync(join(root, readme), 'utf8')
    const shown = [
      ...[...text.matchAll(/!\[([^\]]*)\]\(([^)]+)\)/g)].map(([, words, path]) => ({ words, path })),
      ...[...text.matchAll(/<img src="([^"]+)"[^>]*alt="([^"]*)"/g)].map(([, path, words]) => ({
        words,
        path,
      })),
    ]
    return shown.map(({ words, path }) => ({ words: words!, path: join(root, dirname(readme), path!) }))
  })
  expect(pictures.length).toBeGreaterThanOrEqual(3)
  for (const { words, path } of pictures) {
    expect([path, existsSync(path), words.length > 20]).toEqual([path, true, true])
    expect([path, statSync(path).size <= MOST_BYTES]).toEqual([path, true])
  }
})
