import { commerceWork } from '../../cloud/commerce/work.ts'
import { alarmWork } from '../../cloud/events/alarms/alarms.ts'
import { EventFeed } from '../../cloud/events/feed.ts'
import { webhookWork } from '../../cloud/events/webhooks/deliver.ts'
import { mailWork, type Mail } from '../../cloud/operations/alarms/mail.ts'
import { workObserver } from '../../cloud/operations/alarms/work-alarms.ts'
import { hubWork } from '../../cloud/operations/hubs/hub-events.ts'
import { receiveWebhook } from '../../cloud/commerce/payments/webhook.ts'
import { sandboxWork } from '../../cloud/commerce/processors/sandbox/sandbox.ts'
import { Unavailable, WorkRunner } from '../../cloud/platform/work/runner.ts'
import type { Alarm } from '../../protocol/contract/owner-alarms.ts'
import type { AlarmKindName } from '../../protocol/model/alarms.ts'
import { scriptedPoster, type ScriptedPoster } from '../cloud/events/support/poster.ts'
import type { Plant } from '../world/plant.ts'

const SECRET = 'whsec'
const addressOf = (key: string): string => key

/**
 * The notifications of a plant's people: its due work, its webhooks, and mails to owner 1, who receives all
 * alarms.
 */
export class People {
  readonly plant: Plant
  readonly poster: ScriptedPoster
  readonly mails: Mail[] = []
  isMailUp = true

  static async of(plant: Plant): Promise<People> {
    const values = {
      owner_id: 1,
      email: 'ann@larder.example',
      name: null,
      severity: 'info',
      created_at: 1,
      confirmed_at: 1,
    } as const
    await plant.db.kysely.insertInto('alarm_contacts').values(values).execute()
    return new People(plant)
  }

  private constructor(plant: Plant) {
    this.plant = plant
    const { services } = plant
    const { context, processor } = services
    this.poster = scriptedPoster(context.runtime.clock)
    const send = (mail: Mail): Promise<void> => {
      if (!this.isMailUp) return Promise.reject(new Unavailable('421 too busy'))
      this.mails.push(mail)
      return Promise.resolve()
    }
    const kinds = {
      ...commerceWork(services),
      ...hubWork(context),
      ...alarmWork(context),
      ...mailWork(context, send),
      ...webhookWork({ context, addressOf, poster: this.poster }),
      ...sandboxWork({
        context,
        secret: SECRET,
        async deliver(body, signature) {
          await receiveWebhook(context, SECRET, body, signature, processor.readEvent)
          return true
        },
      }),
    }
    new EventFeed(context, { addressOf }).start()
    new WorkRunner(context, kinds, workObserver(context)).start()
  }

  async #isOpen(kind: AlarmKindName): Promise<boolean> {
    const row = await this.plant.db.kysely
      .selectFrom('alarms')
      .select('id')
      .where('kind', '=', kind)
      .where('owner_id', '=', 1)
      .where('cleared_at', 'is', null)
      .executeTakeFirst()
    return row !== undefined
  }

  async #until(kind: AlarmKindName, isOpen: boolean, atMostMs: number): Promise<boolean> {
    const end = this.plant.time + atMostMs
    while ((await this.#isOpen(kind)) !== isOpen && this.plant.time < end) await this.plant.run(1000)
    return (await this.#isOpen(kind)) === isOpen
  }

  /** Lets time pass until an alarm of the kind is open. Returns the alarm of the owner's API. */
  async raised(kind: AlarmKindName, atMostMs: number): Promise<Alarm> {
    if (!(await this.#until(kind, true, atMostMs))) throw new Error(`nobody is told of ${kind}`)
    const { json } = await this.plant.call('GET', 'alarms?limit=100')
    return (json as { data: Alarm[] }).data.find((alarm) => alarm.kind === kind)!
  }

  async cleared(kind: AlarmKindName, atMostMs: number): Promise<void> {
    if (!(await this.#until(kind, false, atMostMs))) throw new Error(`${kind} does not end`)
  }

  /** Notifications of owner 1 about alarms of a kind, by events and by mail, in order. */
  async told(kind: AlarmKindName): Promise<{ events: string[]; mails: string[] }> {
    const rows = await this.plant.db.kysely
      .selectFrom('events')
      .select(['type', 'data'])
      .where('type', 'in', ['alarm.raised', 'alarm.acknowledged', 'alarm.cleared'])
      .where('owner_id', '=', 1)
      .orderBy('position')
      .execute()
    const alarms = rows.map(({ type, data }) => ({ type, alarm: JSON.parse(data) as Alarm }))
    const items = this.mails.flatMap(({ text }) => text.trim().split('\n\n'))
    return {
      events: alarms
        .filter(({ alarm }) => alarm.kind === kind)
        .map(({ type, alarm }) => `${type} ${alarm.subject ?? 'hub'}`),
      mails: items
        .filter((item) => item.includes(` ${kind}, alm_`))
        .map((item) => (item.startsWith('over: ') ? 'over' : 'raised')),
    }
  }
}
