import { DEFAULT_PORT } from './hub-management.ts'

export const hubUsage = `Usage:
  larder hubs list
  larder hubs show ID

Hubs and their owners:
  larder hubs create --owner NAME | --new-owner NAME --name NAME --street TEXT [--street-2 TEXT] --city TEXT --state TEXT
      --postal-code TEXT --latitude DEGREES --longitude DEGREES --timezone ZONE [--tax PERCENT] [--hardware FILE]
  larder hubs set ID [--external-payments off|customers|everyone] [--maintenance on|off] [--tax PERCENT] [--street TEXT]
      [--street-2 TEXT | --no-street-2] [--city TEXT] [--state TEXT] [--postal-code TEXT] [--latitude DEGREES] [--longitude DEGREES]
      [--timezone ZONE] [--hardware FILE]
  larder hubs rename ID --name NAME
  larder hubs move ID --owner NAME
  larder hubs retire ID [--force]
  larder hubs export ID [--to DIR]
  larder hubs set-layout ID --hardware FILE

Passwords:
  larder hubs renew-password ID [--overlap HOURS] [--old-password-file FILE [--broker URL]]

Management by SSH:
  larder hubs set-management ID --host HOST [--port ${DEFAULT_PORT}] --host-key KEY
  larder hubs clear-management ID
  larder hubs key | rotate-key | end-key-rotation

create registers a hub, and its owner with --new-owner, and prints the hub's MQTT user and password. The password is stored
nowhere and never shown again; renew-password makes another. --hardware takes the hub's hardware description (JSON), which
is stored; set-layout and set replace it. The file names the hub by its number, "hubId". The number of a new hub is known
after create: if the file has another number, create prints what to change. --tax is the sales tax in percent, with at most
three decimals (8.875; default 0).

Each option has a value that is not empty, and is given once. --latitude and --longitude are decimal numbers (-89.65).
--no-street-2 removes the second line of the address.

show prints a hub with its settings. set changes the settings that are given and prints the hub as show does. If a value is
invalid, nothing changes. --external-payments names who may claim an order that an integrator is paid for (guide "Your own
payments"): nobody (off, the default), users with an account (customers), or anonymous users too (everyone).

move gives a hub to another owner. Past orders, payments, events, temperatures, reports and figures stay with the former
owner, who still reads and refunds them. The new owner reads nothing of that time. Products, prices, deals and stock move
with the hub. Roles that name the hub lose it. move fails while an order is being paid, prepared or collected.

retire takes a hub out of service for good. It has no sale, no login and no alarm, and nothing of it changes any more; its books stay readable. retire fails while an
order is unfinished; --force ends such orders and refunds all of their money. Then the hub keeps its login until it has received
the cancellations and has reported what fell before them, but no longer than HUB_DRAIN_MS (7 days). show prints the end of that
time as draining_until, and null when the login has ended. If somebody else may have the hub, call renew-password before
retire: then the login ends at once, and a hub that is offline may still dispense the orders that it has. The hub keeps its
files: erase its card. secrets_erased is true after the hub has confirmed that it erased its secrets; no hub of this version
does.

export prints the stored hardware description and the broker's address, without secrets. --to writes hub.json and
hardware.json into a folder, for a new card. Add the password with renew-password.

renew-password prints a new MQTT password. The embedded broker ends the session of the former one within 5 seconds. --overlap
keeps the former password valid for that many hours (up to 168), so that the hub stays online until its configuration has
the new one. An external broker (MQTT_URL) accepts the former password until its own password file changes: the command
prints the line for that file. --old-password-file contains the former password: the command tries it at the broker and
reports the result. --broker is the address at which hubs reach the broker (default MQTT_URL). The trial interrupts the
hub's own connection for a moment.

--host-key takes the public key of a hub's management service, or its fingerprint (SHA256:…), as
\`larder management --host-key\` prints them on the hub. The cloud refuses a hub with another key. key prints the cloud's own
public key, for the file AUTHORIZED_KEYS of each hub; the first call makes the key. rotate-key makes a new key and keeps the
former one: hubs that have either key let the cloud in. Add the new key at each hub, remove the former one, then call
end-key-rotation.`
