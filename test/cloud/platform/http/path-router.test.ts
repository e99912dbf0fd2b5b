import { expect, test } from 'vitest'
import { PathRouter } from '../../../../cloud/platform/http/path-router.ts'

function routerOf(...places: (readonly [method: string, path: string])[]): PathRouter<string> {
  const router = new PathRouter<string>()
  for (const [method, path] of places) router.add(method, path, `${method} ${path}`)
  return router
}

test('a fixed word takes precedence over a parameter, also for a method that it does not have', () => {
  const router = routerOf(
    ['PUT', '/deals/:deal_id'],
    ['ALL', '/deals/:deal_id'],
    ['POST', '/deals/apply-reward'],
    ['ALL', '/deals/apply-reward'],
  )
  expect(router.match('POST', '/deals/apply-reward')).toEqual([[['POST /deals/apply-reward', {}]]])
  expect(router.match('PUT', '/deals/apply-reward')).toEqual([[['ALL /deals/apply-reward', {}]]])
  expect(router.match('PUT', '/deals/7')).toEqual([[['PUT /deals/:deal_id', { deal_id: '7' }]]])
})

test('a fixed word that leads to no route gives way to a parameter', () => {
  const router = routerOf(
    ['GET', '/users/user/profile/:part'],
    ['GET', '/users/:user_id/orders/:order_id'],
    ['GET', '/users/:user_id'],
  )
  expect(router.match('GET', '/users/user/orders/9')).toEqual([
    [['GET /users/:user_id/orders/:order_id', { user_id: 'user', order_id: '9' }]],
  ])
  for (const path of ['/users/user/profile', '/users/7/orders', '/users', '/users/7/orders/9/more'])
    expect(router.match('GET', path)).toEqual([[]])
})

test('a parameter is never empty, and the last parameter of an open-ended path takes the rest', () => {
  const router = routerOf(['GET', '/'], ['GET', '/files/:key{.+}'], ['GET', '/hubs/:hub_id/products'])
  expect(router.match('GET', '/files/a/b.png')).toEqual([[['GET /files/:key{.+}', { key: 'a/b.png' }]]])
  expect(router.match('GET', '/')).toEqual([[['GET /', {}]]])
  for (const path of ['/files', '/files/', '/hubs//products']) expect(router.match('GET', path)).toEqual([[]])
  expect(router.match('POST', '/')).toEqual([[]])
})

test('paths that differ only in parameter names keep their own names', () => {
  const router = routerOf(['GET', '/a/:one'], ['PUT', '/a/:other'])
  expect(router.match('PUT', '/a/1')).toEqual([[['PUT /a/:other', { other: '1' }]]])
})
