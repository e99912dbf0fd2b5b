import { expect, test } from 'vitest'
import { taskHandlers } from '../../../../cloud/operations/diag/task-handlers.ts'
import { createTaskRunner } from '../../../../cloud/platform/work/runner.ts'
import type { Tasks } from '../../../../cloud/platform/work/task.ts'
import { testApp } from '../../support/app.ts'
import { onEachDatabase } from '../../support/database.ts'

onEachDatabase('a background task that is triggered', (open) => {
  test('and fails is answered with its failure, without what went wrong inside; the next run is another', async () => {
    let isBroken = true
    const idle = { periodMs: 30_000, run: () => Promise.resolve<number[]>([]) }
    const expiring = {
      ...idle,
      run: () =>
        isBroken ? Promise.reject(new RangeError('a secret of the inside')) : Promise.resolve([7, 9]),
    }
    const tasks: Tasks = {
      bestsellers: idle,
      'update-timed-out-orders': idle,
      delete_expired_orders: expiring,
      'notify-about-expiring-orders': idle,
      'update-unclaimed-orders-to-failed': idle,
      'notify-about-unclaimed-orders': idle,
    }
    const { call, key } = await testApp({
      db: await open(),
      handlersOf: (context) => taskHandlers(context, createTaskRunner(context, 'a', tasks)),
    })
    const trigger = async () =>
      call('GET', '/diag/bg_tasks/delete_expired_orders', { key: await key(['diag:write']) })
    const failed = await trigger()
    expect(failed).toMatchObject({
      status: 200,
      json: { task: 'delete_expired_orders', state: 'FAILURE', result: null, error: 'RangeError' },
    })
    expect(JSON.stringify(failed.json)).not.toContain('secret')
    isBroken = false
    expect(await trigger()).toMatchObject({
      status: 200,
      json: { state: 'SUCCESS', result: { processed: 2, affected_ids: [7, 9] }, error: null },
    })
  })
})
