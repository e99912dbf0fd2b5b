import * as files from 'node:fs'
import { copyFileSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { DocsPages, htmlOf } from '../../../cloud/docs/docs-pages.ts'
import type { Description } from '../../../cloud/docs/description.ts'
import { subjectsOf } from '../../../cloud/docs/subjects.ts'
import { openApiDocument } from '../../../cloud/platform/http/openapi.ts'
import { mountsOf, type Route } from '../../../protocol/contract/route.ts'
import { routes } from '../../../protocol/contract/routes.ts'
import { errorCodeNames } from '../../../protocol/model/error-codes.ts'
import { renderGuides } from '../../../edge/packaging/pages.ts'
import { pageAssets } from '../../../protocol/page-assets.ts'

const description = openApiDocument('http://larder.test', routes) as unknown as Description
// The bundler's output, without hashes in names.
const folder = mkdtempSync(join(tmpdir(), 'larder-docs-'))
const root = resolve(import.meta.dirname, '../../..')
await renderGuides(root, folder)
for (const name of ['index.html', 'reference.html', 'plain.css', 'plain.ts', 'page.ts'])
  copyFileSync(join(root, 'cloud/docs/page', name), join(folder, name))
const there = readdirSync(folder)
const assets = pageAssets(files, folder)
afterAll(() => rmSync(folder, { recursive: true }))
const pages = new DocsPages(assets, () => description)
const textOf = (name: string): string => pages.find(name)!.text
const linksIn = (text: string): string[] => [...text.matchAll(/href="\.\/([^"]*)"/g)].map(([, name]) => name!)
interface Place {
  title: string
  url: string
  words: string
}

describe('the documentation’s pages', () => {
  test('every link of every plain page leads to a page, heading or call that exists', () => {
    const names = new Set(['', ...linksIn(textOf('')).map((link) => link.split('#')[0]!)])
    const calls = new Set(
      subjectsOf(description).flatMap(({ slug, operations }) =>
        operations.map(({ method, path }) => `tag/${slug}/${method.toUpperCase()}${path}`),
      ),
    )
    for (const name of names) {
      if (/\.(css|js|svg)$/.test(name)) continue
      expect([name, pages.find(name) !== undefined]).toEqual([name, true])
      for (const link of linksIn(textOf(name))) {
        const [page = '', hash] = link.split('#')
        const isThere = pages.find(page) !== undefined || there.includes(page)
        expect([name, link, isThere]).toEqual([name, link, true])
        if (hash !== undefined) expect([name, calls.has(decodeURIComponent(hash))]).toEqual([name, true])
      }
    }
    expect(names.size).toBeGreaterThan(30)
  })

  test('every endpoint is in the description of one subject, with all components that it references', () => {
    const found = new Set<string>()
    for (const { slug } of subjectsOf(description)) {
      const cut = JSON.parse(textOf(`description-${slug}.json`)) as {
        paths: Record<string, Record<string, { operationId: string }>>
        components: Record<string, Record<string, unknown>>
      }
      for (const item of Object.values(cut.paths))
        for (const { operationId } of Object.values(item)) {
          expect([operationId, found.has(operationId)]).toEqual([operationId, false])
          found.add(operationId)
        }
      for (const [, kind, name] of JSON.stringify(cut).matchAll(/"#\/components\/([^/"]+)\/([^/"]+)"/g))
        expect([slug, kind, name, cut.components[kind!]?.[name!] !== undefined]).toEqual([
          slug,
          kind,
          name,
          true,
        ])
    }
    expect([...found].toSorted()).toEqual(Object.keys(routes).toSorted())
  })

  test('a guide has at most 120 kB, and the description of a subject at most a fifth of the whole', () => {
    const whole = JSON.stringify(description).length
    for (const name of linksIn(textOf('')).filter((link) => link.startsWith('guide-')))
      expect([name, textOf(name).length < 120_000]).toEqual([name, true])
    for (const { slug } of subjectsOf(description))
      expect([slug, textOf(`description-${slug}.json`).length < whole / 5]).toEqual([slug, true])
  })

  test('the guides have no placeholder left, every error code, and filled tables', () => {
    for (const name of linksIn(textOf('')).filter((link) => link.startsWith('guide-')))
      expect([name, /\{\{\w+\}\}/.exec(textOf(name))]).toEqual([name, null])
    for (const code of errorCodeNames)
      expect(textOf('guide-errors')).toContain(`<td><code>${code}</code></td>`)
    expect(textOf('guide-test-cards-and-faults')).toContain('<td><code>pm_card_visa</code></td>')
    expect(textOf('guide-limits')).toContain('<td>not limited</td>')
  })

  test('the search lists guides, and endpoints with the names of their fields', () => {
    const places = JSON.parse(textOf('search.json')) as Place[]
    const having = (word: string): string =>
      places
        .filter(({ words }) => words.includes(word))
        .map(({ url }) => url)
        .join(' ')
    expect(having('client_secret')).toContain('reference-payments#tag/payments/POST')
    expect(having('opening quantity') + having('idempotency-key')).toContain('guide-idempotency')
    for (const route of Object.values<Route>(routes)) {
      const [path] = mountsOf(route)
      expect(places.some(({ title }) => title.startsWith(`${route.method} ${path}: `))).toBe(true)
    }
  })

  test('an unknown page is not found, and texts of the description cannot add markup', () => {
    for (const name of ['guide-none', 'reference-none', 'description-none.json', 'index.html', '../main.ts'])
      expect(pages.find(name)).toBeUndefined()
    expect(htmlOf('# <b>a</b>\n\n| a | b |\n|---|---|\n| <i> | `<code>` |')).not.toMatch(
      /<[bi]>|<code><code>/,
    )
    expect(htmlOf('- a\n- b\n    - c\n    - d')).toBe(
      '<ul><li>a</li><li>b<ul><li>c</li><li>d</li></ul></li></ul>',
    )
    expect(htmlOf('- a\n    - b\n- c')).toBe('<ul><li>a<ul><li>b</li></ul></li><li>c</li></ul>')
  })
})
