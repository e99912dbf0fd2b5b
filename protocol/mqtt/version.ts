/**
 * The version of everything below `larder/v1/`. After the first release every change of a schema in this folder raises it. A test compares the
 * schemas' hash with the recorded one, so that no change of the wire goes unnoticed.
 *
 * 1  first version: session, two streams, commands
 * 2  commands: cycle_bin, open_fridge, close_fridge, open_main_door, reconnect_bin, reconnect_fridge; counts in the
 *    cloud's snapshot; cloud processes check each other
 * 3  hellos name the life of the hub's service; the cloud's clock in its batches and acknowledgements
 * 4  a UUID identifies an order, not its number; order.reduce and reduce_order; lines of the cloud's snapshot contain
 *    the wanted units; bins report their capacity
 * 5  hubs report changes of rows, bins, cabinets and fridges (state), and their alarms in snapshots; alarms have a
 *    subject in place of a device; counts of single rows; fridges that people have confirmed; extremes of temperatures;
 *    results of commands contain the hub's health; actions of people at the hub (local). Older hubs cannot be
 *    supported: they do not report blocked rows, bins and cabinets.
 * 6  the cloud delays the hellos of hubs that connect at the same time (later); a hub accepts a welcome to any hello of
 *    its session; no heartbeats before the welcome. An older hub sends a hello every 3 s, whatever the cloud answers.
 *    settle_operation; operations of unknown outcome report when they began.
 * 7  the codes of alarms are a closed list (SPEC §11)
 * 8  cloud processes share the hubs: here, handed, ask and clock between them. Hubs notice no difference.
 * 9  maintenance reports from the hub (maintenance.report): records of its acceptances; planograms and snapshots of the
 *    cloud name the products
 * 10 welcomes report that the cloud follows another epoch (left). An older hub on a copied card replaces the cloud's
 *    stock with its own.
 * 11 alarms of fridges that cannot be read (fridge_unreadable);
 *    a bound for every text, number and list of a hub's reports;
 *    a goodbye of a hub that stops normally (presence);
 *    the order's number in reports about orders;
 *    failures of the hub's storage in heartbeats (health.storage), and without a hello if the hub cannot read its
 *    journal (storage);
 *    alarms of a hub that restarts repeatedly, and of certificates that expire (hub_restarting, certificate_expiring);
 *    the person in local entries and, for a count or a restock, the units before and after.
 *    Commands test rows (test_dispense). An older hub ignores it: the caller gets 504, and nothing moves.
 *    Commands block and unblock rows (block_row, unblock_row). An older hub ignores them: the caller gets 504.
 *    A hub requests its next certificate (certificate). An older cloud ignores the request.
 *    A hub reports which authorities it trusts, and receives those of the cloud (ca). An older hub gets certificates of the
 *    former authority until the end of its overlap.
 *    A retired or revoked board erases its secrets (erase, erased). An older hub ignores the order.
 *    A hub moves to another cell (move, moved, next in erase, can_move in hellos). An older hub ignores the order; the cloud does
 *    not send it to a hub without can_move.
 *    Settings and hardware descriptions of hubs (desired, in entries, snapshots and hellos; hardware). An older hub stores
 *    the entry as a dead letter.
 *    Names and PIN digests of people in the hub's configuration. An older hub ignores them.
 *    Releases of rollouts (software in the desired state), and their progress in hellos (update). An older hub ignores them.
 *    The trusted root of releases (root in software). An older hub ignores it.
 *    Figures of the board in heartbeats (vitals); log records and archives in parts (diagnosis). An older hub ignores it.
 */
export const MQTT_PROTOCOL_VERSION = 11
/** Messages of earlier versions cannot be translated. */
const OLDEST_UNDERSTOOD = 6

/** Whether the cloud speaks a hub's version: the present one, or the previous one if it can be understood (SPEC §9). */
export const isSpoken = (version: number): boolean =>
  version <= MQTT_PROTOCOL_VERSION && version >= Math.max(OLDEST_UNDERSTOOD, MQTT_PROTOCOL_VERSION - 1)

/** The hash of the schemas and topics at this version (`test/protocol/mqtt/version.test.ts`). */
export const MQTT_SCHEMA_HASH = '6a55fceeab50c904'
