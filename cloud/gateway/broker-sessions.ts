import type { Client } from 'aedes'
import type { Clock } from '../../protocol/model/runtime.ts'
import { downTopic } from '../../protocol/mqtt/topics.ts'
import type { Queries } from '../platform/store/database.ts'
import { endedLogins, stillHolds, type HubLogin, type LoginRefusal } from './hub-logins.ts'
import { eraseOrder } from './moves.ts'

/** Time for a retired or revoked board to erase its secrets. Then its session ends. */
const ERASE_MS = 2000

interface SessionPorts {
  q: Queries
  clock: Clock
  publish: (topic: string, payload: string) => void
  refuse: (client: Client, why: LoginRefusal, user: string | undefined) => void
}

/** The logins of connected hubs, and their ends. */
export class BrokerSessions {
  /** Of every client that has signed in, because the broker publishes a will after the end of the connection. */
  readonly #logins = new WeakMap<Client, HubLogin>()
  readonly #open = new Map<Client, HubLogin>()
  /** Sessions that end, possibly after their boards have erased their secrets. */
  readonly #ending = new Set<Client>()
  readonly #ports: SessionPorts

  constructor(ports: SessionPorts) {
    this.#ports = ports
  }

  loginOf(client: Client): HubLogin | undefined {
    return this.#logins.get(client)
  }

  /** The hub has signed in. It may have given up before: then the broker announces no end of this client. */
  begin(client: Client, login: HubLogin): void {
    if (client.closed || client.conn.destroyed) return
    this.#logins.set(client, login)
    this.#open.set(client, login)
    client.conn.once('close', () => {
      this.#open.delete(client)
      this.#ending.delete(client)
    })
  }

  /** Whether a hub's session may publish now. A renewed password ends the session before the message is passed on. */
  async mayAct(client: Client, login: HubLogin): Promise<boolean> {
    const { q, clock } = this.#ports
    // While the database is unavailable, no message of the hub is applied anyway.
    const holds = await stillHolds(q, clock.now(), login).catch(() => true)
    if (holds) return true
    await this.#end(client, login)
    return this.#open.has(client)
  }

  /** The session remains only for the confirmation that the board's secrets are erased. */
  isErasing(client: Client): boolean {
    return this.#ending.has(client)
  }

  /** Ends the sessions whose passwords were renewed, certificates revoked, or hubs retired. */
  async endAll(): Promise<void> {
    const { q, clock } = this.#ports
    const all = [...this.#open].map(([client, login]) => ({ ...login, client }))
    for (const { client, ...login } of await endedLogins(q, clock.now(), all)) await this.#end(client, login)
  }

  async #end(client: Client, { hubId }: { hubId: number }): Promise<void> {
    const { q, clock, publish } = this.#ports
    if (this.#ending.has(client)) return
    this.#ending.add(client)
    const order = await eraseOrder(q, hubId).catch(() => undefined)
    if (!order) return this.#close(client)
    publish(downTopic(hubId, 'erase'), JSON.stringify(order))
    clock.after(ERASE_MS, () => this.#close(client))
  }

  #close(client: Client): void {
    if (!this.#open.delete(client)) return
    this.#ports.refuse(client, 'the password was renewed, or the certificate revoked', client.id)
    client.close()
  }
}
