import { existsSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { expect, test } from 'vitest'
import { demoRoutes } from '../../../protocol/contract/root-routes.ts'
import type { Route } from '../../../protocol/contract/route.ts'
import { routes } from '../../../protocol/contract/routes.ts'
import { walks } from './all-cases.ts'
import type { RouteCases } from './call.ts'

const root = resolve(import.meta.dirname, '../../..')
const walked = Object.values(walks).flatMap((cases) => Object.entries(cases as Record<string, RouteCases>))
const served = (Object.entries(routes) as [string, Route][]).filter(([id]) => !(id in demoRoutes))

test('every served route is walked exactly once', () => {
  expect(walked.map(([id]) => id).toSorted()).toEqual(served.map(([id]) => id).toSorted())
  for (const part of ['owner', 'consumer', 'diag', 'root'])
    console.log(`${part}: ${served.filter(([, route]) => route.interface === part).length} routes walked`)
})

test('every walk has its test file', () => {
  for (const name of Object.keys(walks))
    expect([name, existsSync(resolve(import.meta.dirname, `${name}.test.ts`))]).toEqual([name, true])
})

test('each error that a walk leaves out is in the named test file', () => {
  for (const [id, { elsewhere = {} }] of walked)
    for (const [code, file] of Object.entries(elsewhere)) {
      expect([id, code, file]).toEqual([id, code, expect.stringMatching(/^test\/.+\.test\.ts$/)])
      const text = existsSync(resolve(root, file)) ? readFileSync(resolve(root, file), 'utf8') : ''
      expect([id, code, file, text.includes(`'${code}'`)]).toEqual([id, code, file, true])
    }
})
