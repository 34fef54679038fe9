//! Steps that change roles and members.

use serde_json::json;

use super::steps::Choice;
use super::workspace::{CheckResult, MemberModel, WorkspaceModel, text};

impl WorkspaceModel<'_> {
    pub(super) async fn make_role(&mut self, name: u8) -> CheckResult {
        let name = format!("role {name}");
        let taken = self.roles.iter().any(|(_, known)| *known == name);
        let body = json!({"name": name, "permissions": ["contentPieces:read"]});
        let made = self.post("/roles", &body, if taken { 409 } else { 201 }).await?;
        if !taken {
            self.roles.push((text(&made["id"]), name));
        }
        Ok(())
    }

    pub(super) async fn delete_role(&mut self, role: Choice) -> CheckResult {
        let id = self.pick_role(role);
        let name = self.roles.iter().find(|(known, _)| *known == id).map(|(_, name)| name);
        let expected = match name.map(String::as_str) {
            None => 404,
            Some("Admin") => 409,
            Some(_) if self.members.iter().any(|member| member.role == id) => 409,
            Some(_) => 204,
        };
        self.delete(&format!("/roles?id={id}"), expected).await?;
        if expected == 204 {
            self.roles.retain(|(known, _)| *known != id);
            self.deleted.push(id);
        }
        Ok(())
    }

    fn has_role(&self, role: &str) -> bool {
        self.roles.iter().any(|(id, _)| id == role)
    }

    pub(super) async fn invite(&mut self, number: u8, role: Choice) -> CheckResult {
        let (email, role) = (format!("p{number}@example.org"), self.pick_role(role));
        let taken = self.members.iter().any(|member| member.email == email);
        let expected = match (self.has_role(&role), taken) {
            (false, _) => 400,
            (true, true) => 409,
            (true, false) => 201,
        };
        let body = json!({"email": email, "name": "Invited", "roleId": role});
        let made = self.post("/workspace-memberships", &body, expected).await?;
        if expected == 201 {
            let id = text(&made["id"]);
            self.members.push(MemberModel { id: id.clone(), email, role });
            self.record_event("memberInvited", &id, None, None);
        }
        Ok(())
    }

    pub(super) async fn change_role(&mut self, member: Choice, role: Choice) -> CheckResult {
        let (id, role) = (self.pick_member(member), self.pick_role(role));
        let found = self.members.iter().position(|one| one.id == id);
        let expected = match found {
            None => 404,
            Some(_) if !self.has_role(&role) => 400,
            // This member owns the token and is the last Admin, as all others are only invited.
            Some(0) if role != self.members[0].role => 409,
            _ => 204,
        };
        let body = json!({"id": id, "roleId": role});
        self.put("/workspace-memberships", &body, expected).await?;
        if expected == 204 {
            self.members[found.unwrap()].role = role;
        }
        Ok(())
    }

    pub(super) async fn remove_member(&mut self, member: Choice) -> CheckResult {
        let id = self.pick_member(member);
        let expected = match self.members.iter().position(|one| one.id == id) {
            None => 404,
            Some(0) => 409,
            Some(_) => 204,
        };
        self.delete(&format!("/workspace-memberships?id={id}"), expected).await?;
        if expected == 204 {
            self.members.retain(|one| one.id != id);
            for piece in &mut self.pieces {
                piece.members.retain(|member| *member != id);
            }
            self.record_event("memberRemoved", &id, None, None);
            self.deleted.push(id);
        }
        Ok(())
    }
}
